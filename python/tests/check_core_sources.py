"""core_sources.txt names the files that the extension links: `pip install` compiles these and no others. This compares it with the
linker's map of a build that has all files, so that neither a missing file (an import that fails) nor one too many goes unseen.

    check_core_sources.py CORE_MAP CORE_SOURCES_TXT CONFIGURATION
"""
import re
import sys
from pathlib import PurePath

map_file, list_file, configuration = sys.argv[1:]
with open(map_file) as lines:
    text = lines.read().partition("\nDiscarded input sections")[0].partition("\nMemory Configuration")[0]
linked = set(re.findall(r"libvramtrack_(\w+)\.a\((\S+?)\.o\)", text))
with open(list_file) as lines:
    listed = {line.strip() for line in lines}
if not linked:
    sys.exit(f"{map_file} names no object of an archive: is it the linker's map?")
names = {(line.partition("/")[0], PurePath(line).name) for line in listed}
failed = False
for module, name in sorted(linked - names):
    print(f"{list_file} lacks {name} of src/{module}, which the extension links")
    failed = True
# Without optimisation, a linker also takes what only unused functions refer to.
for module, name in sorted(names - linked) if configuration == "Release" else []:
    print(f"{list_file} names {name} of src/{module}, which the extension does not link: `pip install` would compile it for nothing")
    failed = True
sys.exit(failed)
