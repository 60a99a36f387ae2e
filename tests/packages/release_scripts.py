#!/usr/bin/env python3
"""The scripts of `make dist` that only read and write text: the release notes, and the bill of materials."""
import importlib.util
import json
import pathlib
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


release_notes = script("release_notes")
sbom = script("sbom")

CHANGES = "# Changes\n\n## Unreleased\n\n* New.\n\n## 0.2.0\n\n### Part\n\n* Second.\n\n## 0.1.0 (2026-01-01)\n\n* First.\n"


class ReleaseNotes(unittest.TestCase):
    def test_between_releases_it_is_what_is_unreleased(self):
        self.assertEqual(release_notes.notes(CHANGES, "0.2.0"), "# vramtrack 0.2.0 (not released)\n\n* New.\n")

    def test_a_release_has_a_section_of_its_own_with_its_parts(self):
        text = CHANGES.replace("* New.\n", "")
        self.assertEqual(release_notes.notes(text, "0.2.0", released=True), "# vramtrack 0.2.0\n\n### Part\n\n* Second.\n")
        self.assertEqual(release_notes.notes(text, "0.1.0"), "# vramtrack 0.1.0\n\n* First.\n")

    def test_a_release_leaves_nothing_out(self):
        with self.assertRaisesRegex(LookupError, "under '## Unreleased'; move them to '## 0.2.0'"):
            release_notes.notes(CHANGES, "0.2.0", released=True)

    def test_a_version_without_a_section_is_an_error(self):
        with self.assertRaisesRegex(LookupError, "no section '## 0.3.0'"):
            release_notes.notes(CHANGES.replace("* New.\n", ""), "0.3.0", released=True)

    def test_ours_has_one(self):
        version = (ROOT / "VERSION").read_text().strip()
        self.assertIn("vramtrack", release_notes.notes((ROOT / "CHANGELOG.md").read_text(), version))


class Materials(unittest.TestCase):
    def test_headers_are_the_systems(self):
        deps = "a.o: #deps 3, deps mtime 1 (VALID)\n    /src/a.cpp\n    /usr/include/zlib.h\n    /usr/include/fmt/core.h\n\nb.o: #deps 1\n    /usr/include/zlib.h\n"
        self.assertEqual(sbom.headers_of(deps, {"a.o", "b.o"}), ["/usr/include/fmt/core.h", "/usr/include/zlib.h"])
        self.assertEqual(sbom.headers_of(deps, {"b.o"}), ["/usr/include/zlib.h"])

    def test_archives_are_those_of_the_link(self):
        link = "g++ -o vramtrack main.o src/libvramtrack_cli.a /usr/lib/x86_64-linux-gnu/libz.a /usr/lib/x86_64-linux-gnu/libssl.a -lm /usr/lib/libx.attic"
        self.assertEqual(sbom.archives_of(link), ["/usr/lib/x86_64-linux-gnu/libssl.a", "/usr/lib/x86_64-linux-gnu/libz.a"])

    def test_shared_libraries_are_those_the_binary_needs(self):
        dump = "Dynamic Section:\n  NEEDED               libfmt.so.9\n  NEEDED               libc.so.6\n  INIT                 0x1\n"
        self.assertEqual(sbom.needed_of(dump), ["libfmt.so.9", "libc.so.6"])

    def test_owners(self):
        answer = ("libfmt-dev:amd64: /usr/include/fmt/core.h\nlibc6-dev:amd64, libx:amd64: /usr/include/x.h\n"
                  "diversion by a from: /usr/include/y.h\ndpkg-query: no path found matching pattern /usr/include/z.h\n")
        self.assertEqual(sbom.owners_of(answer), {"libfmt-dev:amd64", "libc6-dev:amd64", "libx:amd64"})

    def test_only_what_runs_in_the_page_is_part_of_it(self):
        lock = {"packages": {"": {"name": "page"},
                             "node_modules/uplot": {"version": "1.6.32", "integrity": "sha512-AA=="},
                             "node_modules/a/node_modules/@b/c": {"version": "1.0.0"},
                             "node_modules/esbuild": {"version": "0.25.9", "dev": True},
                             "node_modules/@esbuild/linux": {"version": "0.25.9", "dev": True, "optional": True}}}
        self.assertEqual(sbom.run_time_packages(lock), [("@b/c", "1.0.0", ""), ("uplot", "1.6.32", "sha512-AA==")])
        ours = json.loads((ROOT / "page" / "package-lock.json").read_text())
        self.assertEqual([name for name, _, _ in sbom.run_time_packages(ours)], ["uplot"])

    def test_a_wheel_names_what_is_linked_in(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "vramtrack-1.0-cp312-abi3-linux_x86_64.whl"
            with zipfile.ZipFile(path, "w") as wheel:
                wheel.writestr("vramtrack-1.0.dist-info/licenses/THIRD_PARTY_LICENSES",
                               "==== no-such-package\n\ntext\n==== nanobind 2.9.2\n\ntext\n==== tsl::robin_map 1.3.0\n\nMIT\n")
            found = sbom.libraries_of_wheel(path)
        self.assertEqual([entry["purl"] for entry in found.values()], ["pkg:pypi/nanobind@2.9.2", "pkg:generic/tsl/robin_map@1.3.0"])

    def test_the_document(self):
        zlib = sbom.library("pkg:deb/debian/zlib@1.2", "zlib", "1.2", "dynamic")
        uplot = sbom.library("pkg:npm/uplot@1.6.32", "uplot", "1.6.32", "compiled in", [{"alg": "SHA-512", "content": "00"}])
        made = sbom.document("1.0", [("a.deb", "aa", {"zlib": zlib, "uplot": uplot}), ("b.whl", "bb", {"zlib": zlib})], "2026-01-01T00:00:00Z")
        self.assertEqual((made["bomFormat"], made["specVersion"]), ("CycloneDX", "1.5"))
        refs = [entry["bom-ref"] for entry in made["components"]]
        self.assertEqual(refs, ["a.deb", "b.whl", "pkg:deb/debian/zlib@1.2", "pkg:npm/uplot@1.6.32"])
        self.assertEqual(len(refs), len(set(refs)))
        depends = {entry["ref"]: entry["dependsOn"] for entry in made["dependencies"]}
        self.assertEqual(depends["pkg:generic/vramtrack@1.0"], ["a.deb", "b.whl"])
        self.assertEqual(depends["b.whl"], ["pkg:deb/debian/zlib@1.2"])
        # Every reference is to a component.
        for entries in depends.values():
            self.assertLessEqual(set(entries), set(refs))


if __name__ == "__main__":
    unittest.main()
