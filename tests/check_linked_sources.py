"""A list of sources names the files that a target links, which are compiled for it and no others. This compares the list with the
linker's map of a build that has all files, so that neither a missing file nor one too many goes unseen.

    check_linked_sources.py LINKER_MAP LIST CONFIGURATION
"""
import re
import sys
from pathlib import PurePath

map_file, list_file, configuration = sys.argv[1:]
with open(map_file) as lines:
    text = lines.read().partition("\nDiscarded input sections")[0].partition("\nMemory Configuration")[0]
linked = set(re.findall(r"libvramtrack_(\w+?)(?:_main_job)?\.a\((\S+?)\.o\)", text))
with open(list_file) as lines:
    listed = {line.strip() for line in lines if not line.startswith("#")}
if not linked:
    sys.exit(f"{map_file} names no object of an archive: is it the linker's map?")
# A module in a folder of another: run/client is run_client.
names = {(module, PurePath(line).name) for line in listed for module in (line.partition("/")[0], "_".join(line.split("/")[:2]))}
wanted = {PurePath(line): {line.partition("/")[0], "_".join(line.split("/")[:2])} for line in listed}
failed = False
for module, name in sorted(linked - names):
    print(f"{list_file} lacks {name} of src/{module}, which is linked")
    failed = True
# Without optimisation, a linker also takes what only unused functions refer to.
for path, modules in sorted(wanted.items()) if configuration == "Release" else []:
    if not any((module, path.name) in linked for module in modules):
        print(f"{list_file} names {path}, which is not linked: it would be compiled for nothing")
        failed = True
sys.exit(failed)
