#!/usr/bin/env python3
"""Prints a CycloneDX 1.5 bill of materials of the packages in dist/: the libraries that each is linked with or has compiled in.

    scripts/sbom.py VERSION [--build PACKAGE=BUILD_DIR]... PACKAGE...

It examines the build, not a list. In a build folder: the headers that ninja has recorded for each object, the archives in
the link command, and the shared libraries that the binary needs, each with the Debian package that owns it. In a wheel: the
licences that it carries, which name the linked libraries. The dashboard: the packages in page/package-lock.json that run in it.
"""
import argparse
import base64
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# System headers: they describe glibc and the kernel, and add nothing of them to a program.
NOT_COMPILED_IN = {"glibc", "linux"}


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def headers_of(ninja_deps, objects):
    """The paths outside the project that these objects depend on, from `ninja -t deps`: the tests' objects are in the same folder."""
    found = set()
    wanted = False
    for line in ninja_deps.splitlines():
        if not line.startswith(" "):
            wanted = line.partition(":")[0] in objects
        elif wanted and line.startswith("    /usr/"):
            found.add(line.strip())
    return sorted(found)


def archives_of(link_command):
    return sorted(set(re.findall(r"(/usr/\S+\.a)\b", link_command)))


def needed_of(objdump):
    """The shared libraries' names, from `objdump -p`."""
    return re.findall(r"^ +NEEDED +(\S+)$", objdump, re.MULTILINE)


def late_of(functions):
    """The shared libraries that the program loads on demand, from the list that cmake/late_libraries.cmake writes."""
    return [os.path.realpath(path) for path in re.findall(r"^// (/\S+)$", functions.read_text(), re.MULTILINE)] if functions.exists() else []


def owners_of(dpkg_search):
    """The packages in the output of `dpkg -S`: "libfmt-dev:amd64: /usr/include/fmt/core.h"."""
    owners = set()
    for line in dpkg_search.splitlines():
        packages, colon, path = line.partition(": ")
        if colon and path.startswith("/") and not line.startswith("diversion "):
            owners.update(packages.split(", "))
    return owners


def headings_of(licenses):
    """The libraries in a wheel's THIRD_PARTY_LICENSES: (name, version or None)."""
    return [(name, version or None) for name, version in re.findall(r"^==== (\S+)(?: (\S+))?$", licenses, re.MULTILINE)]


def run_time_packages(package_lock):
    """(name, version, integrity) of each package that runs in the page; packages that only build and test it are marked dev."""
    return [
        (path.rpartition("node_modules/")[2], entry["version"], entry.get("integrity", ""))
        for path, entry in sorted(package_lock["packages"].items())
        if path and not entry.get("dev") and not entry.get("devOptional")
    ]


def library(purl, name, version, linkage, hashes=()):
    component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if hashes:
        component["hashes"] = list(hashes)
    component["properties"] = [{"name": "vramtrack:linkage", "value": linkage}]
    return component


def debian_libraries(packages, linkage):
    """One component per source package: libfmt-dev and libfmt9 are one work."""
    found = {}
    for package in sorted(packages):
        try:
            source, version = output("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}\n", package).splitlines()[0].split()
        except (subprocess.CalledProcessError, IndexError):
            continue
        purl = f"pkg:deb/debian/{source}@{version}?arch=source".replace("+", "%2B")
        found[source] = library(purl, source, version, linkage)
    return found


def owned_by(files):
    found = set()
    files = [str(file) for file in files]
    for begin in range(0, len(files), 500):
        done = subprocess.run(["dpkg", "-S", *files[begin : begin + 500]], capture_output=True, text=True, check=False)
        found |= owners_of(done.stdout)
    return found


def shared_files(binary, late):
    """The libraries that the binary loads at its start and later, and their dependencies."""
    known = {}
    for line in output("/sbin/ldconfig", "-p").splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow:
            known.setdefault(name.split()[0], path)
    paths = list(late)
    todo = [str(binary), *late]
    while todo:
        for name in needed_of(output("objdump", "-p", todo.pop())):
            path = known.get(name)
            if path and path not in paths:
                paths.append(path)
                todo.append(path)
    # dpkg records the paths with which files were installed, which may be in /lib or /usr/lib.
    return paths + [os.path.realpath(path) for path in paths] + [re.sub("^/usr/", "/", os.path.realpath(path)) for path in paths]


def libraries_of_build(folder):
    folder = pathlib.Path(folder)
    binary = folder / "vramtrack"
    link = output("ninja", "-C", str(folder), "-t", "commands", "-s", "vramtrack")
    # Relative paths are in a build folder and do not belong to the system.
    objects = set(output("ninja", "-C", str(folder), "-t", "inputs", "vramtrack").split("\n"))
    compiled_in = headers_of(output("ninja", "-C", str(folder), "-t", "deps"), objects) + archives_of(link)
    late = late_of(folder / "late" / "vramtrack" / "late_functions.def")
    linked = debian_libraries(owned_by(shared_files(binary, late)), "dynamic")
    found = {**debian_libraries(owned_by(compiled_in), "compiled in"), **linked}
    for source in NOT_COMPILED_IN - set(linked):
        found.pop(source, None)
    lock = json.loads((ROOT / "page" / "package-lock.json").read_text())
    for name, version, integrity in run_time_packages(lock):
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        hashes = []
        if integrity.startswith("sha512-"):
            hashes = [{"alg": "SHA-512", "content": base64.b64decode(integrity[7:]).hex()}]
        found["npm:" + name] = library(purl, name, version, "compiled in", hashes)
    return found


def libraries_of_wheel(path):
    with zipfile.ZipFile(path) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("/licenses/THIRD_PARTY_LICENSES")]
        headings = headings_of(wheel.read(name).decode())
    found = debian_libraries({name for name, version in headings if version is None}, "compiled in")
    for name, version in headings:
        if version is not None:
            kind = "generic" if "::" in name else "pypi"
            found[f"{kind}:{name}"] = library(f"pkg:{kind}/{name.replace('::', '/')}@{version}", name, version, "compiled in")
    return found


def document(version, packages, time):
    """`packages`: (file name, sha256, libraries by name)."""
    libraries = {}
    files = []
    depends = []
    for name, digest, linked in packages:
        files.append({"type": "file", "bom-ref": name, "name": name, "version": version, "hashes": [{"alg": "SHA-256", "content": digest}]})
        depends.append({"ref": name, "dependsOn": sorted(entry["bom-ref"] for entry in linked.values())})
        for entry in linked.values():
            libraries.setdefault(entry["bom-ref"], entry)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "component": {
                "type": "application",
                "bom-ref": f"pkg:generic/vramtrack@{version}",
                "name": "vramtrack",
                "version": version,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": files + [libraries[ref] for ref in sorted(libraries)],
        "dependencies": [{"ref": f"pkg:generic/vramtrack@{version}", "dependsOn": [entry["name"] for entry in files]}, *depends],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("version")
    parser.add_argument("packages", nargs="+", type=pathlib.Path)
    parser.add_argument("--build", action="append", default=[], metavar="PACKAGE=BUILD_DIR")
    arguments = parser.parse_args()
    builds = dict(entry.split("=", 1) for entry in arguments.build)
    packages = []
    for path in arguments.packages:
        if path.suffix == ".whl":
            libraries = libraries_of_wheel(path)
        elif path.name in builds:
            libraries = libraries_of_build(builds[path.name])
        else:
            libraries = {}  # sources, texts
        packages.append((path.name, hashlib.sha256(path.read_bytes()).hexdigest(), libraries))
    now = int(os.environ.get("SOURCE_DATE_EPOCH") or datetime.datetime.now().timestamp())
    time = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    json.dump(document(arguments.version, packages, time), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
