#!/usr/bin/env python3
"""The scripts of `make dist` that need no build: release notes, bill of materials, install.sh, and what the workflows may not do."""
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest
import zipfile
from unittest import mock

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


published = script("published")
sys.modules["published"] = published
dist = script("dist")
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


class Installer(unittest.TestCase):
    """install.sh with an archive of a program that is a script."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)
        self.home = self.path / "home"
        self.home.mkdir()
        self.name = f"vramtrack-{dist.version()}-linux-{os.uname().machine}"
        self.pack("#!/bin/sh\necho vramtrack of the release\n")

    def pack(self, program, url=""):
        stage = self.path / self.name
        (stage / "bin").mkdir(parents=True, exist_ok=True)
        (stage / "bin" / "vramtrack").write_text(program)
        (stage / "bin" / "vramtrack").chmod(0o755)
        self.archive = self.path / f"{self.name}.tar.gz"
        with tarfile.open(self.archive, "w:gz") as archive:
            archive.add(stage, self.name)
        digest = hashlib.sha256(self.archive.read_bytes()).hexdigest()
        self.script = self.path / "install.sh"
        self.script.write_text(dist.installer((ROOT / "scripts" / "install.sh").read_text(), url, [(self.archive.name, digest)]))

    def run_script(self, *arguments):
        return subprocess.run(["sh", self.script, *arguments], capture_output=True, text=True, cwd=self.path, timeout=60,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.home)})  # fmt: skip

    def test_it_installs_what_it_has_compared_and_says_what_it_did(self):
        prefix = self.home / "a prefix"
        for _ in range(2):  # again: an upgrade to the same version
            done = self.run_script("--from", str(self.path), "--prefix", str(prefix))
            self.assertEqual(done.returncode, 0, done.stderr)
            program = subprocess.run([prefix / "bin" / "vramtrack"], capture_output=True, text=True)
            self.assertEqual(program.stdout, "vramtrack of the release\n")
        for part in ("read ", "compare its SHA-256", "unpack it into", "link ", "to remove it: rm -r", "is not in PATH"):
            self.assertIn(part, done.stdout)
        self.assertEqual(sorted(path.name for path in prefix.iterdir()), ["bin", "lib"])

    def test_a_dry_run_does_nothing(self):
        done = self.run_script("--from", str(self.path), "--prefix", str(self.home / "prefix"), "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing was done", done.stdout)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_another_file_is_not_installed(self):
        self.archive.write_bytes(self.archive.read_bytes() + b"x")
        done = self.run_script("--from", str(self.path), "--prefix", str(self.home / "prefix"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("it is not the file of this release, and nothing was installed", done.stderr)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_a_program_that_does_not_start_is_not_installed(self):
        self.pack("#!/bin/sh\necho GLIBC_2.34 not found >&2\nexit 1\n")
        done = self.run_script("--from", str(self.path), "--prefix", str(self.home / "prefix"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("does not start here, and nothing was installed: GLIBC_2.34 not found", done.stderr)
        self.assertEqual(list(self.home.iterdir()), [])

    def test_what_is_missing_is_named(self):
        self.assertIn("name it with --from URL", self.run_script().stderr)
        self.assertIn("needs an absolute path", self.run_script("--from", ".", "--prefix", "here").stderr)
        self.assertIn("unknown option '--force'", self.run_script("--force").stderr)
        self.assertIn("cannot be read", self.run_script("--from", "/nowhere").stderr)
        self.script.write_text((ROOT / "scripts" / "install.sh").read_text())
        self.assertIn("belongs to no release", self.run_script().stderr)
        self.script.write_text(dist.installer((ROOT / "scripts" / "install.sh").read_text(), "", [("vramtrack-9-linux-vax.tar.gz", "0" * 64)]))
        self.assertIn("no archive for", self.run_script("--from", ".").stderr)

    def test_the_release_is_where_it_was_said_to_be(self):
        self.pack("#!/bin/sh\n", url="https://releases.example/v1")
        done = self.run_script("--dry-run")
        self.assertIn(f"download https://releases.example/v1/{self.archive.name}", done.stdout)


class Published(unittest.TestCase):
    def test_the_lines_of_a_published_release_are_shown(self):
        text = "a\n<!-- published:\nget URL/VERSION\n-->\nb\n"
        self.assertEqual(published.published(text, "1.2", "https://x"), "a\nget https://x/1.2\nb\n")
        self.assertEqual(published.published("a\n<!-- until published -->\nnone\n<!-- end -->\nb\n", "1.2", "https://x"), "a\nb\n")

    def test_ours_have_some(self):
        ours = {str(path.relative_to(ROOT)) for path in published.documents()}
        self.assertEqual(ours, {"README.md", "docs/install.md", "docs/python.md"})
        for name in ours:
            shown = published.published((ROOT / name).read_text(), "1.2", "https://x")
            self.assertIn("pip install vramtrack", shown)
            self.assertNotIn("<!--", shown)
            self.assertNotIn("No wheel is on PyPI", shown)

    def test_no_document_denies_what_is_published_but_in_such_lines(self):
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
            if path.name != "CHANGELOG.md":
                self.assertNotRegex(published.published(path.read_text(), "1.2", "https://x"), r"(?i)\bno (wheel|image|release|package)s? (is|are) (on|published)", path)

    def test_the_packages_of_a_release_say_what_is_true_then(self):
        """Only of one that has an address: they are made when the documents of the work tree have its text."""
        for words, is_published in ((["deb"], False), (["--url", "https://x", "deb"], False), (["--released", "--url", "https://x", "deb"], True)):
            with self.subTest(words=words), tempfile.TemporaryDirectory() as folder:
                root = pathlib.Path(folder)
                (root / "docs").mkdir()
                (root / "docs" / "python.md").write_bytes((ROOT / "docs" / "python.md").read_bytes())
                packed = []
                with mock.patch.object(published, "ROOT", root), mock.patch.object(published, "version", lambda: "1.2"), mock.patch.object(dist, "DIST", root / "dist"), \
                        mock.patch.object(dist, "make", lambda step, root=root, packed=packed: packed.append((root / "docs" / "python.md").read_text()) or True), \
                        mock.patch.object(dist, "write", lambda name, *_: (dist.DIST / name).touch()), mock.patch.object(sys, "argv", ["dist.py", *words]):
                    dist.main()
                self.assertEqual("<!-- published:" not in packed[0] and "No wheel is on PyPI" not in packed[0], is_published)

    def test_each_job_that_makes_packages_changes_the_documents_first(self):
        jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())["jobs"]
        for name, job in jobs.items():
            runs = [step.get("run", "") for step in job["steps"]]
            made = [i for i, run in enumerate(runs) if re.match(r"make (container|wheels|dist)\b", run)]
            if made:
                before = [run for run in runs[: made[0] + 1] if re.match(r"scripts/published\.py --url|make dist DIST=\"--released --url ", run)]
                self.assertTrue(before, name)

    def test_what_is_uploaded_to_pypi_is_no_archive_of_another_kind(self):
        line = re.search(r"twine upload ([^`]*)`", (ROOT / "CONTRIBUTING.md").read_text())[1]
        version = published.version()
        made = [f"vramtrack-{version}-cp312-abi3-manylinux_2_34_x86_64.whl", f"vramtrack-{version}.tar.gz"]
        with tempfile.TemporaryDirectory() as folder:
            for name in [*made, f"vramtrack-{version}-linux-x86_64.tar.gz", f"vramtrack-{version}-manual.tar.gz", f"vramtrack-{version}-chart.tgz", f"vramtrack_{version}_amd64.deb"]:
                (pathlib.Path(folder) / name).touch()
            (pathlib.Path(folder) / "VERSION").write_text(version)
            (pathlib.Path(folder) / "dist").symlink_to(".")
            chosen = subprocess.run(["sh", "-c", f"printf '%s\\n' {line}"], cwd=folder, capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual(sorted(chosen), sorted(f"dist/{name}" for name in made))


class Workflows(unittest.TestCase):
    def test_images_are_named_by_digest_and_actions_by_commit(self):
        for path in [ROOT / "Containerfile", *(ROOT / ".github" / "workflows").glob("*.yml")]:
            text = path.read_text()
            images = re.findall(r"\b(?:debian|ubuntu):[\w.-]+(\S*)", text)
            self.assertTrue(images and all(re.match(r"@sha256:[0-9a-f]{64}$", digest) for digest in images), (path.name, images))
            for commit in re.findall(r"uses: [\w/.-]+@(\S+)", text):
                self.assertRegex(commit, r"^[0-9a-f]{40}$")

    def test_a_cluster_finds_the_image_by_the_name_in_the_chart(self):
        """A name without a registry is one of docker.io/library; podman would take it for one of localhost."""
        values = yaml.safe_load((ROOT / "contrib" / "kubernetes" / "helm" / "vramtrack" / "values.yaml").read_text())
        run = subprocess.run(["make", "-n", "container"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        image = f"docker.io/library/{values['image']['repository']}:{(ROOT / 'VERSION').read_text().strip()}"
        self.assertEqual(set(re.findall(r"(?<= )\S*vramtrack:\S+", run)), {image})

    def test_a_privileged_container_runs_for_no_pull_request(self):
        for path in (ROOT / ".github" / "workflows").glob("*.yml"):
            flow = yaml.safe_load(path.read_text())
            for name, job in flow["jobs"].items():
                container = job.get("container")
                if isinstance(container, dict) and "--privileged" in container.get("options", "") and "pull_request" in flow[True]:
                    self.assertEqual(job.get("if"), "github.event_name != 'pull_request'", f"{path.name}: {name}")

    def test_wheels_are_built_for_more_than_debians_python(self):
        """Debian 12 has 3.11 alone; the release's wheels are tried on Ubuntu 22.04 and 24.04, too."""
        for path in (ROOT / ".github" / "workflows").glob("*.yml"):
            for name, job in yaml.safe_load(path.read_text())["jobs"].items():
                steps = job["steps"]
                for index, step in enumerate(steps):
                    if re.search(r"make (wheels|dist\b(?!.*DIST=)|dist.*\bwheels\b)", step.get("run", "")):
                        folder = step["env"]["VRAMTRACK_PYTHONS"]
                        brought = [before.get("run") for before in steps[:index]]
                        self.assertIn(f"scripts/pythons.sh {folder}", brought, f"{path.name}: {name}")

    def test_packages_of_python_are_named_by_hash(self):
        for path in [*(ROOT / "python").glob("requirements*.txt"), ROOT / "scripts" / "requirements-site.txt"]:
            named = re.findall(r"^[\w-]+==.*(?:\n +--hash=sha256:[0-9a-f]{64}.*)*", path.read_text(), re.MULTILINE)
            self.assertTrue(named and all("--hash=" in entry for entry in named), path.name)
        for path in (ROOT / "scripts").glob("*.sh"):
            for line in re.findall(r"pip\S* install.* -r .*", path.read_text()):
                self.assertIn("--require-hashes", line, path.name)


class Compose(unittest.TestCase):
    """contrib/compose, which no engine here can start: what it mounts is there, and nothing listens beyond loopback."""

    def setUp(self):
        self.folder = ROOT / "contrib" / "compose"
        self.services = yaml.safe_load((self.folder / "compose.yaml").read_text())["services"]

    def test_what_it_mounts_is_there(self):
        for name, service in self.services.items():
            for volume in service.get("volumes", []):
                self.assertTrue((self.folder / volume.split(":")[0]).is_dir(), (name, volume))
                self.assertTrue(volume.endswith(":ro"), (name, volume))
        provider = yaml.safe_load((self.folder / "grafana" / "dashboards" / "vramtrack.yaml").read_text())["providers"][0]
        self.assertIn(f"../grafana:{provider['options']['path']}:ro", self.services["grafana"]["volumes"])

    def test_all_listen_on_loopback(self):
        for name, service in self.services.items():
            self.assertEqual(service["network_mode"], "host", name)
        for name in ("prometheus", "alertmanager"):
            listens = [word for word in self.services[name]["command"] if "listen-address" in word]
            self.assertTrue(listens and all(word.endswith("=") or "=127.0.0.1:" in word for word in listens), listens)
        self.assertEqual(self.services["grafana"]["environment"]["GF_SERVER_HTTP_ADDR"], "127.0.0.1")
        self.assertNotIn("--listen", self.services["agent"]["command"])


if __name__ == "__main__":
    unittest.main()
