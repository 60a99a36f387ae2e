"""The program that `make run` builds: its commands work as those of the whole program, and it names how to get the others."""
import sys
import unittest

from sandbox import Sandbox, drm_machine, leak_log, no_gpu

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

    def test_it_says_that_it_traces_no_running_programs(self):
        with Sandbox(BINARY) as box:
            shown = box.run("watch", "--once", "--no-record", "--telemetry", *drm_machine())
            self.assertIn("this program, which 'make run' built, cannot trace running programs", (shown.stdout + shown.stderr).decode())


if __name__ == "__main__":
    unittest.main(verbosity=1)
