"""The documents against the program: man page, completions and the JSON contract name all there is, and no more."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from sandbox import TESTS, Sandbox, leak_log

BINARY = sys.argv.pop(1)
ROOT = TESTS.parent


def read(path):
    return (ROOT / path).read_text()


class Documents(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with Sandbox(BINARY) as box:
            cls.helps = {(): box.run("--help").stdout.decode()}
            for command in cls.commands(cls.helps[()]):
                cls.helps[(command,)] = box.run(command, "--help").stdout.decode()
            for verb in cls.commands(cls.helps[("config",)]):
                cls.helps[("config", verb)] = box.run("config", verb, "--help").stdout.decode()
            for verb in cls.commands(cls.helps[("snapshot",)]):
                cls.helps[("snapshot", verb)] = box.run("snapshot", verb, "--help").stdout.decode()
            box.write("leak.csv", leak_log())
            cls.row = json.loads(box.run("analyze", "--format", "json", "--explain", "leak.csv").stdout.decode().splitlines()[0])
        cls.options = {o for text in cls.helps.values() for o in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text.split("Example")[0])}
        cls.words = {word for command in cls.helps for word in command}

    @staticmethod
    def commands(text):
        return re.findall(r"^  ([a-z]+) ", re.search(r"(?:Subcommands|SUBCOMMANDS):\n((?:  .*\n)+)", text)[1], re.MULTILINE)

    def test_help_was_understood(self):
        self.assertLessEqual({"watch", "replay", "analyze", "simulate", "doctor", "config", "show", "path", "init"}, self.words)
        self.assertLessEqual({"--help", "--version", "--config", "--set", "--detector", "--format"}, self.options)

    def test_every_help_has_an_example(self):
        for command, text in self.helps.items():
            self.assertRegex(text, r"Examples?:\n +.*vramtrack", f"vramtrack {' '.join(command)} --help")

    def test_the_man_page_has_every_command_and_option(self):
        page = read("docs/man/vramtrack.1").replace("\\-", "-")
        for word in self.words | self.options:
            self.assertRegex(page, rf"(?<![\w-]){word}(?![\w-])")
        stale = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) - self.options - {"--query-gpu", "--format"}
        self.assertFalse(stale)

    @unittest.skipUnless(shutil.which("mandoc") or shutil.which("groff"), "neither mandoc nor groff is installed")
    def test_the_man_page_is_well_formed(self):
        page = str(ROOT / "docs/man/vramtrack.1")
        tool = ["mandoc", "-T", "lint", "-W", "warning", page] if shutil.which("mandoc") else ["groff", "-man", "-ww", "-z", page]
        result = subprocess.run(tool, capture_output=True, check=False)
        self.assertEqual(result.stderr + result.stdout, b"")

    def test_completions_have_every_command_and_option(self):
        for name in ("vramtrack.bash", "_vramtrack"):
            text = read(f"contrib/completions/{name}")
            for word in self.words | self.options:
                self.assertRegex(text, rf"(?<![\w-]){word}(?![\w-])", name)
            self.assertFalse(set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - self.options, name)
        fish = read("contrib/completions/vramtrack.fish")
        for word in self.words:
            self.assertRegex(fish, rf"\b{word}\b")
        self.assertEqual({f"--{o}" for o in re.findall(r"^complete .* -l ([a-z-]+)", fish, re.MULTILINE)}, self.options)

    def test_completions_are_valid_shell(self):
        for shell, name in (("bash", "vramtrack.bash"), ("zsh", "_vramtrack"), ("fish", "vramtrack.fish")):
            if shutil.which(shell):
                subprocess.run([shell, "-n", str(ROOT / "contrib/completions" / name)], check=True)

    def test_bash_completes(self):
        script = str(ROOT / "contrib/completions/vramtrack.bash")
        for typed, expected in ((["wa"], "watch"), (["watch", "--on"], "--once"), (["snapshot", "le"], "leaks"),
                                (["snapshot", "leaks", "--us"], "--used"), (["config", "init", "--f"], "--force"),
                                (["report", "--format", ""], "text md json html"),
                                (["snapshot", "export", "--format", "c"], "chrome csv"), (["watch", "--interval", ""], ""),
                                (["analyze", "/etc/passw"], "/etc/passwd"), (["simulate", "leaking_t"], "leaking_training")):
            code = f'source {script}; COMP_WORDS=(vramtrack "$@"); COMP_CWORD=$#; _vramtrack; echo "${{COMPREPLY[*]}}"'
            words = subprocess.run(["bash", "-c", code, "bash", *typed], capture_output=True, check=True).stdout.decode().split()
            self.assertLessEqual(set(expected.split()), set(words), typed)
            self.assertEqual(expected == "", not words, typed)

    def test_every_field_of_the_json_is_documented(self):
        text = read("docs/formats/analysis.md")
        fields = set(self.row) | set(self.row["series"]) | set(self.row["verdict"]) | set(self.row["alerts"][0])
        for field in fields:
            self.assertRegex(text, rf"[`.]{field}`", field)

    def test_every_setting_named_in_the_documents_exists(self):
        with Sandbox(BINARY) as box:
            shown = box.run("config", "show").stdout.decode()
        keys = set(re.findall(r"^([a-z-]+) = ", shown, re.MULTILINE))
        self.assertEqual(set(re.findall(r"^\| `([a-z-]+)` \|", read("docs/CONFIG.md"), re.MULTILINE)), keys)


if __name__ == "__main__":
    unittest.main(verbosity=1)
