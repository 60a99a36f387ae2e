"""src/left_out.txt names the files and folders that the program of `make run` does not link. This compares it with the linker's map of
that program, so that neither a missing file nor one too many goes unseen.

    check_linked_sources.py LINKER_MAP LIST CONFIGURATION SOURCES
"""
import re
import sys
from pathlib import Path, PurePath

map_file, list_file, configuration, source_folder = sys.argv[1:]
with open(map_file) as lines:
    text = lines.read().partition("\nDiscarded input sections")[0].partition("\nMemory Configuration")[0]
linked = set(re.findall(r"libvramtrack_(\w+?)(?:_main_job)?\.a\((\S+?)\.o\)", text))
with open(list_file) as lines:
    left_out = [line.strip() for line in lines if not line.startswith("#")]
if not linked:
    sys.exit(f"{map_file} names no object of an archive: is it the linker's map?")
found = list(Path(source_folder).rglob("*.cpp"))
found += [path.with_name(f"{path.stem}_toml.cpp") for path in Path(source_folder).rglob("*.toml")]  # embedded, see src/CMakeLists.txt
sources = [path.relative_to(source_folder).as_posix() for path in found]
listed = {path for path in sources if "/" in path and not path.startswith(("probe/", "cli/main", *left_out))}


def modules(path):
    """A folder of a module may be a separate module: run/client is run_client."""
    return {path.partition("/")[0], "_".join(path.split("/")[:2])}


wanted = {(module, PurePath(path).name) for path in listed for module in modules(path)}
failed = False
for module, name in sorted(linked - wanted):
    print(f"by {list_file}, {name} of src/{module} is not needed, and it is linked")
    failed = True
# Without optimisation, a linker also takes what only unused functions refer to.
for path in sorted(listed) if configuration == "Release" else []:
    if not any((module, PurePath(path).name) in linked for module in modules(path)):
        print(f"by {list_file}, src/{path} is needed, and it is not linked: it would be compiled for nothing")
        failed = True
sys.exit(failed)
