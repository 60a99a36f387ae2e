"""What watch and simulate print on a real terminal: every line fits, and words stay whole."""
import re
import shutil
import sys
import unittest

from sandbox import Sandbox, leak_log, no_gpu
from terminal import Terminal

BINARY = sys.argv.pop(1)
WIDTHS = (80, 100, 200)


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class Screen(unittest.TestCase):
    def setUp(self):
        self.box = Sandbox(BINARY).__enter__()
        self.addCleanup(self.box.__exit__)

    def watch(self, width, *args):
        terminal = Terminal(self.box, "--or-simulate", *no_gpu(), *args, size=(width, 40), command="watch")
        self.addCleanup(terminal.close)
        return terminal

    def test_the_verdict_and_the_end_are_seen_at_every_width(self):
        for width in WIDTHS:
            with self.subTest(width=width):
                watch = self.watch(width)
                # A row is one line: it begins with the GPU and ends with the time when its memory runs out.
                watch.wait_for(r"^GPU 0 .* GiB +\+\d+ MiB/min  LEAK.*, out of memory in \d+h \d\dm")
                watch.press("C-c")
                end = watch.wait_for(r"^exit=0")
                self.assertRegex(end, r"(?m)^GPU 0 .*  LEAK.*, out of memory in \d+h \d\dm")
                self.assertIn("happened   not yet: you stopped the simulation", end)
                # -J joins lines that the terminal itself has broken: such a line is longer than the screen.
                joined = watch.screen("-J", "-S", "-200")
                self.assertLessEqual(max(len(line.rstrip()) for line in joined.splitlines()), width, joined)

    def test_paragraphs_hang_under_their_labels(self):
        watch = self.watch(80)
        screen = watch.wait_for(r"(?m)^    next     save a checkpoint .*\n {13}\S")
        self.assertTrue(re.search(r"(?m)^    because  ", screen), screen)

    def test_an_analysis_fits_its_terminal(self):
        self.box.write("leak.csv", leak_log())
        for width in WIDTHS:
            with self.subTest(width=width):
                terminal = Terminal(self.box, "--explain", "leak.csv", size=(width, 60), command="analyze")
                self.addCleanup(terminal.close)
                terminal.wait_for(r"^exit=1")
                text = terminal.screen("-J", "-S", "-300")
                self.assertLessEqual(max(len(line.rstrip()) for line in text.splitlines()), width, text)
                self.assertRegex(text, r"(?m)^  because    floor rose")
                self.assertRegex(text, r"(?m)^Key to explain")


if __name__ == "__main__":
    unittest.main(verbosity=1)
