import sys

import pytest
from plugin_options import plugin_options

import vramtrack

pytest_plugins = ["pytester"]

MESSAGE = (
    "CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is free. Of the allocated "
    "memory 15.00 GiB is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated."
)


def test_an_error_with_figures():
    explanation = vramtrack.explain(RuntimeError(MESSAGE))
    assert explanation.cause == "fragmentation"
    assert "7.00 GiB were reserved and not allocated" in explanation.because
    assert "expandable_segments" in explanation.next_step and explanation.would_tell == ""
    assert explanation.failures[0]["figures"]["asked_bytes"] == 4 * 2**30
    assert str(explanation).startswith("FRAGMENTATION: 4.00 GiB were requested")


def test_a_text_and_bytes():
    assert vramtrack.explain(MESSAGE).cause == "fragmentation"
    assert vramtrack.explain(b"\xff\xfe " + MESSAGE.encode()).cause == "fragmentation"
    assert vramtrack.explain("all is well") is None
    assert vramtrack.explain(ValueError("all is well")) is None
    unknown = vramtrack.explain("CUDA error: out of memory")
    assert unknown.cause == "unknown" and unknown.would_tell and not unknown.next_step


def test_the_error_behind_an_error():
    try:
        try:
            raise RuntimeError(MESSAGE)
        except RuntimeError as error:
            raise ValueError("training failed") from error
    except ValueError as error:
        assert vramtrack.explain(error).cause == "fragmentation"


def test_pinned_memory_is_seen_in_the_traceback():
    def pin_memory():
        raise RuntimeError("CUDA error: out of memory")

    with pytest.raises(RuntimeError) as raised:
        pin_memory()
    assert vramtrack.explain(raised.value).cause == "host"


def test_a_watch_prints_it_under_the_error(device, capsys):
    with pytest.raises(RuntimeError):
        with vramtrack.Watch(device):
            raise RuntimeError(MESSAGE)
    assert "vramtrack: FRAGMENTATION" in capsys.readouterr().err
    with pytest.raises(ValueError):
        with vramtrack.Watch(device):
            raise ValueError("something else")
    assert capsys.readouterr().err == ""


def test_a_watch_prints_it_under_an_error_that_nobody_catches(device, capsys):
    before = sys.excepthook
    watch = vramtrack.Watch(device).start()
    try:
        error = RuntimeError(MESSAGE)
        sys.excepthook(type(error), error, None)
        said = capsys.readouterr().err
        assert said.index("RuntimeError: CUDA out of memory") < said.index("vramtrack: FRAGMENTATION")
    finally:
        watch.stop()
    assert sys.excepthook is before


def test_the_plugin_prints_it(pytester):
    pytester.makepyfile(f"def test_trains():\n    raise RuntimeError({MESSAGE!r})\n\ndef test_other():\n    raise ValueError('no')\n")
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    text = result.stdout.str()
    assert text.count("vramtrack: FRAGMENTATION") == 1
