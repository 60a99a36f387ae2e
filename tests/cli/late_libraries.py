"""The libraries that are loaded when they are first called (cmake/late_libraries.cpp): none is needed to start, and one that is missing is named.

    late_libraries.py VRAMTRACK LIBRARY,...
"""
import os
import signal
import subprocess
import sys
import unittest

from patience import patience
from sandbox import Sandbox, leak_log

BINARY, LIBRARIES = sys.argv.pop(1), sys.argv.pop(1).split(",")


class LateLibraries(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def test_none_is_needed_to_start(self):
        needed = subprocess.run([BINARY, "--version"], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=True).stdout
        self.assertIn("libsqlite3.so", needed)
        for library in LIBRARIES:
            self.assertNotIn(os.path.basename(library), needed)

    def test_an_agent_loads_them(self):
        with self.box.start("agent", "--scenario", "leaking_training", "--listen", "127.0.0.1:0", "--set", f"agent.socket={self.box.path}/agent.sock") as agent:
            said = agent.stderr.readline().decode()
            with open(f"/proc/{agent.pid}/maps") as maps:
                mapped = maps.read()
            agent.send_signal(signal.SIGTERM)
            agent.communicate(timeout=patience(30))
        self.assertIn("answers on http://", said)
        self.assertEqual(agent.returncode, 0)
        self.assertIn("/libcpp-httplib.so", mapped)

    def test_one_that_cannot_be_loaded_is_named(self):
        broken = self.box.work / "broken"
        broken.mkdir()
        for library in LIBRARIES:
            (broken / os.path.basename(os.path.realpath(library))).touch()
        without = {"LD_LIBRARY_PATH": str(broken)}
        self.box.write("gpu.csv", leak_log())
        self.assertEqual(self.box.run("analyze", "gpu.csv", env=without).returncode, 1)
        agent = self.box.run("agent", "--scenario", "leaking_training", "--listen", "127.0.0.1:0", env=without)
        self.assertEqual(agent.returncode, 2)
        self.assertRegex(agent.stderr.decode(), r"^vramtrack: cannot load lib\S+, which this command needs: .*too short; install the package that has it$")


if __name__ == "__main__":
    unittest.main(verbosity=1)
