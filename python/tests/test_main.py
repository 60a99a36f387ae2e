"""python -m vramtrack, and the notebook's magic."""
import os
import shutil
import subprocess
import sys
import types

import pytest

import vramtrack
from vramtrack.__main__ import main, program, report

MIB = 2**20


def run(*arguments, **environment):
    return subprocess.run([sys.executable, "-m", "vramtrack", *arguments], capture_output=True, text=True, timeout=60,
                          env={**os.environ, **environment})  # fmt: skip


def test_the_report(device):
    device.allocate(100 * MIB)
    device.allowed_bytes = 2**30
    text = "\n".join(report())
    assert f"vramtrack {vramtrack.__version__}" in text and "24.0 GiB, limit 1.0 GiB" in text
    assert "100.0 MiB by tensors" in text and "no process figures: the source is not a CUDA device" in text


@pytest.mark.skipif(program() != shutil.which("vramtrack"), reason="the program came with the package (test_install.py)")
def test_it_runs_the_program(tmp_path):
    script = tmp_path / "vramtrack"
    script.write_text('#!/bin/sh\necho "ran $*"\nexit 5\n')
    script.chmod(0o755)
    done = run("test", "--", "job", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert (done.stdout, done.returncode) == ("ran test -- job\n", 5)
    done = run("watch", PATH="/nowhere")
    assert done.returncode == 127 and "not in PATH" in done.stderr


def test_help_and_version(capsys):
    assert main(["--help"]) == main(["--version"]) == 0
    assert capsys.readouterr().out.endswith(f"vramtrack {vramtrack.__version__}\n")


class Shell:
    """What the magic asks of IPython's shell."""

    def __init__(self):
        self.magics = {}
        self.names = {}

    def register_magic_function(self, function, kind, name):
        assert kind == "line_cell"
        self.magics[name] = function

    def run_cell(self, code):
        try:
            exec(code, self.names)
            error = None
        except Exception as raised:
            error = raised

        def raise_error():
            if error is not None:
                raise error

        return types.SimpleNamespace(raise_error=raise_error)


CELL = "kept = device.allocate(30 * 2**20)\ndevice.free(device.allocate(20 * 2**20))\n"
WORDS = "GPU memory: +30.0 MiB kept, 50.0 MiB at the peak, 30.0 MiB now"


def test_the_magic(device, capsys):
    shell = Shell()
    shell.names["device"] = device
    vramtrack.load_ipython_extension(shell)
    shell.magics["vramtrack"]("", CELL)
    assert WORDS in capsys.readouterr().out
    with pytest.raises(ZeroDivisionError):
        shell.magics["vramtrack"]("1 / 0")
    assert "GPU memory: 0 bytes kept" in capsys.readouterr().out


def test_the_magic_in_ipython(device, capsys):
    pytest.importorskip("IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.user_ns["device"] = device
    shell.run_line_magic("load_ext", "vramtrack")
    shell.run_cell_magic("vramtrack", "", CELL)
    assert WORDS in capsys.readouterr().out
