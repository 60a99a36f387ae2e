"""The program that `make run` builds: its commands work as those of the whole program, and it names how to get the others."""
import re
import sys
import unittest

from sandbox import Sandbox, drm_machine, leak_log, no_gpu, smi_log

WHOLE = sys.argv.pop(1)
BINARY = sys.argv.pop(1)


def commands(box):
    text = box.run("--help").stdout.decode()
    return [line.split()[0] for line in text.partition("Subcommands:\n")[2].partition("\n\n")[0].splitlines()]


class MainJob(unittest.TestCase):
    def test_it_names_what_is_left_out_and_how_to_build_it(self):
        with Sandbox(WHOLE) as box:
            whole = commands(box)
        with Sandbox(BINARY) as box:
            own = commands(box)
            self.assertEqual(sorted(own), ["analyze", "replay", "report", "simulate", "top", "watch"])
            for command in set(whole) - set(own):
                result = box.run(command, "--url", "x")
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr.decode(), f"vramtrack: '{command}' is not part of this program, which 'make run' built; 'make build' builds all commands\n")
            self.assertIn("'make build' builds the other commands: agent, fleet", box.run("--help").stdout.decode())
            self.assertIn("unknown command 'fleets'", box.run("fleets").stderr.decode())

    def test_its_commands_answer_as_those_of_the_whole_program(self):
        answers = {}
        for binary in (BINARY, WHOLE):
            with Sandbox(binary, alerts_wait=True) as box:
                box.write("leak.csv", leak_log())
                answers[binary] = [(r.returncode, r.stdout, r.stderr) for r in (
                    box.run("analyze", "leak.csv"), box.run("analyze", "--format", "json", "leak.csv"), box.run("replay", "leak.csv"), box.run("report", "leak.csv"),
                    box.run("simulate"), box.run("watch", "--or-simulate", "--once", *no_gpu()), box.run("watch", "--help"), box.run("--version"))]
        self.assertEqual(answers[BINARY], answers[WHOLE])
        self.assertEqual([status for status, _, _ in answers[BINARY]], [1, 1, 1, 1, 0, 0, 0, 0])

    def test_what_its_hints_name_works_or_they_name_how_to_add_it(self):
        with Sandbox(BINARY) as box:
            box.write("ended.csv", smi_log(lambda t: (4000 + 8 * t if t <= 2400 else 400) if t <= 2700 else None))
            shown = {}
            for words in (["watch", *no_gpu()], ["top", "--no-agent", *no_gpu()], ["report"], ["replay"], ["analyze", "ended.csv"], ["watch", "--set", "x=1"]):
                result = box.run(*words)
                text = shown[words[0]] = " ".join((result.stdout + result.stderr).decode().split())
                own = commands(box)
                for name, behind in re.findall(r"'(?:sudo )?vramtrack ([a-z]+)[^']*'(.{24}|)", text):
                    self.assertTrue((name in own) != behind.startswith(" ('make build' adds it)"), f"{name} in {text}")
            self.assertIn("'vramtrack run' ('make build' adds it) names the lines", shown["analyze"])

    def test_without_a_gpu_what_its_hints_name_works_as_typed(self):
        with Sandbox(BINARY) as box:
            for words in (["watch", *no_gpu()], ["top", "--no-agent", *no_gpu()]):
                text = box.run(*words).stderr.decode()
                hint = re.search(r"and 'vramtrack (.*?)' shows a simulated job", text)[1].split()
                self.assertEqual(hint[0], words[0])
                self.assertEqual(box.run(*hint, "--once", *no_gpu()).returncode, 0, text)
            for words in (["report"], ["replay"]):
                text = box.run(*words).stderr.decode()
                hint = re.search(r"without a GPU, 'vramtrack (.*?)' writes a log", text)[1].split()
                self.assertEqual(box.run(*hint).returncode, 0, text)
                self.assertEqual(box.run(*words, hint[-1]).returncode, 1, text)

    def test_it_says_that_it_traces_no_running_programs(self):
        with Sandbox(BINARY) as box:
            shown = box.run("watch", "--once", "--no-record", "--telemetry", *drm_machine())
            self.assertIn("this program, which 'make run' built, cannot trace running programs", (shown.stdout + shown.stderr).decode())


if __name__ == "__main__":
    unittest.main(verbosity=1)
