"""`vramtrack top` on a running agent: its view, its history, its acknowledgements; and what it says when the agent is gone."""
import shutil
import sys
import unittest

from running import Agent, Sandbox, until
import side_by_side
from terminal import Terminal

BINARY = sys.argv.pop(1)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Attach(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def open(self, agent):
        top = Terminal(self.box, size=(120, 40), env={"XDG_RUNTIME_DIR": str(agent.runtime)})
        self.addCleanup(top.close)
        return top

    def test_it_shows_what_the_agent_watches_and_acknowledges_there(self):
        with Agent(self.box, speed=200) as agent:
            until(lambda: agent.get("/api/v1/alerts", unix=True)["alerts"], 60, "an alert")
            top = self.open(agent)
            top.wait_for(rf"agent pid {agent.process.pid}\b")
            top.wait_for(r"pid 4242|4242 ada")
            top.wait_for(r"SIMULATION leaking_training")
            top.press("d")
            top.wait_for(r"recorded since")  # before this screen was opened
            top.press("A")
            top.wait_for(r"CRITICAL +active|WARNING +active")
            top.press("Home", "a")
            until(lambda: any(a["acknowledged"] for a in agent.get("/api/v1/alerts", unix=True)["alerts"]), 20, "the acknowledgement")
            top.press("q")
            top.wait_for(r"exit=0")

    def test_alerts_of_before_are_shown_too(self):
        with Agent(self.box, speed=600) as agent:
            # A simulation that ended starts over: its view knows nothing of the alerts of the run before.
            until(lambda: len(agent.get("/api/v1/alerts", unix=True)["alerts"]) >= 3, 90, "the alerts of two runs")
            top = self.open(agent)
            top.wait_for(r"GPU 0")
            top.press("A")
            top.wait_for(r"(?:^.*GPU 0.*\n[\s\S]*?){3}")

    def test_doctor_names_it(self):
        with Agent(self.box) as agent:
            told = self.box.run("doctor", env={"XDG_RUNTIME_DIR": str(agent.runtime)}).stdout.decode()
            self.assertRegex(told, rf"ok +agent +\S+ answers on {agent.socket} \(pid {agent.process.pid}, ")
            self.assertIn("a simulation: leaking_training", told)
            self.assertNotIn("Nothing to watch here", told)
        self.assertNotIn("agent", self.box.run("doctor", env={"XDG_RUNTIME_DIR": str(agent.runtime)}).stdout.decode())

    def test_an_agent_that_ends_is_named_and_what_was_seen_stays(self):
        with Agent(self.box) as agent:
            top = self.open(agent)
            top.wait_for(r"GPU 0")
            agent.stop()
            self.assertIn("GPU 0", top.wait_for(r"the agent does not answer"))


if __name__ == "__main__":
    side_by_side.main()
