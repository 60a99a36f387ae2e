"""A sandbox whose commands run in one process (commands.cpp), for tests that run hundreds of them."""
import pathlib
import subprocess

from sandbox import Sandbox


class OneProcess(Sandbox):
    """`binary` is vramtrack; the program that runs its commands lies beside it."""

    def __enter__(self):
        super().__enter__()
        self.commands = subprocess.Popen([pathlib.Path(self.binary).with_name("vramtrack_commands")], cwd=self.work, env=self.environment(),
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_):
        self.commands.communicate()
        super().__exit__()

    def run(self, *args):
        """As Sandbox.run(), with an empty standard input."""
        request = b"".join(arg.encode() + b"\0" for arg in args)
        self.commands.stdin.write(b"%d\n%s" % (len(request), request))
        self.commands.stdin.flush()
        sizes = self.commands.stdout.readline().split()
        if not sizes:
            raise RuntimeError(f"the process of the commands ended with {self.commands.wait()} at {args}")
        code, out, error = map(int, sizes)
        return subprocess.CompletedProcess(args, code, self.commands.stdout.read(out), self.commands.stdout.read(error))
