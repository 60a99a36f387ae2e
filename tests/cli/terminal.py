"""A command, mostly vramtrack top, in its own terminal, whose screen is read and whose keys are pressed, by tmux."""
import itertools
import re
import subprocess
import time

from patience import patience

DEADLINE_S = patience(30)


class Terminal:
    """One window of its own tmux server."""

    numbers = itertools.count()

    def __init__(self, box, *args, size=(80, 24), env=None, command="top"):
        self.box = box
        self.env = box.environment({"XDG_RUNTIME_DIR": str(box.path), **(env or {})})
        # A server of its own: one that is ending no longer answers on a socket, but has not removed it yet.
        self.socket = str(box.path / f"tmux{next(Terminal.numbers)}")
        # tmux gives the program its own TERM.
        line = subprocess.list2cmdline([box.binary, command, *args])
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                  f"{line} 2>errors; echo exit=$?; exec sleep {DEADLINE_S}")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-u", "-S", self.socket, *args], cwd=self.box.work, env=self.env, check=True,
                              capture_output=True, timeout=patience(30)).stdout.decode()

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def type(self, text):
        """These characters as they are, such as what a terminal sends for the mouse."""
        self.tmux("send-keys", "-H", *(f"{byte:02x}" for byte in text.encode()))

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait_for(self, *patterns, press_meanwhile=None, type_meanwhile=None):
        """The first screen with all `patterns` on it. Until then the key is pressed, or the characters typed, again and again.

        What must be on one screen belongs into one call: a screen may be read while half of it is drawn.
        """
        end = time.monotonic() + DEADLINE_S
        while True:
            text = self.screen()
            missing = [pattern for pattern in patterns if not re.search(pattern, text, re.MULTILINE)]
            if not missing:
                return text
            if time.monotonic() > end:
                raise AssertionError(f"no {' and no '.join(map(repr, missing))} on the screen:\n{text}\n{(self.box.work / 'errors').read_text()}")
            if press_meanwhile:
                self.press(press_meanwhile)
            if type_meanwhile:
                self.type(type_meanwhile)
            time.sleep(0.05)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.env, capture_output=True, check=False)
