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


# As PyTorch 2.5 raised it in a container: the process is named by its pid on the host.
REAL = (
    "CUDA out of memory. Tried to allocate 336.00 MiB. GPU 2 has a total capacity of 79.15 GiB of which 141.25 MiB is free. Process 2109115 has "
    "78.99 GiB memory in use. Of the allocated memory 77.21 GiB is allocated by PyTorch, and 283.51 MiB is reserved by PyTorch but unallocated. "
    "If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
    "documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


class OutOfMemoryError(RuntimeError):
    pass


def test_a_real_error_with_what_came_after_it():
    try:
        try:
            raise OutOfMemoryError(REAL)
        except OutOfMemoryError as error:
            raise RuntimeError("NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)") from error
    except RuntimeError as error:
        explanation = vramtrack.explain(error)
    assert explanation.cause == "full"
    assert explanation.failures[0]["own_pid"] == 2109115 and explanation.failures[0]["others"] == []
    assert [event["what"] for event in explanation.events] == ["PyTorch ran out of GPU memory", "NCCL failed in a call to CUDA"]
    assert "other process" not in str(explanation) and "PyTorch ran out of GPU memory" in explanation.story


def test_a_warning_is_no_failure():
    notice = "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.10GiB with freed_by_count=0. The caller indicates that this is not a failure"
    assert vramtrack.explain(notice) is None


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


def test_a_leak_error_is_no_message_and_the_error_before_it_is():
    leak = vramtrack.LeakError("GPU memory grows 1.00 MiB/iteration; the limit is 0.20 MiB/iteration; call 101 ran out of memory")
    assert vramtrack.explain(leak) is None
    leak.__context__ = RuntimeError(MESSAGE)
    explanation = vramtrack.explain(leak)
    assert explanation.cause == "fragmentation" and len(explanation.failures) == 1
    leak.__context__.__cause__ = leak  # a circle
    assert vramtrack.explain(leak).cause == "fragmentation"


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


def test_all_of_it_is_printed_for_a_real_error(device, capsys, pytester):
    with pytest.raises(OutOfMemoryError):
        with vramtrack.Watch(device):
            raise OutOfMemoryError(REAL)
    said = capsys.readouterr().err
    assert "vramtrack: FULL: 77.21 GiB of the device's 79.15 GiB were allocated" in said and "pid 2109115" in said
    pytester.makepyfile(f"def test_trains():\n    raise RuntimeError({REAL!r})\n")
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    text = result.stdout.str()
    assert "vramtrack: FULL: 77.21 GiB of the device's 79.15 GiB were allocated" in text and "  do           use less in all" in text


def test_the_plugin_prints_it(pytester):
    pytester.makepyfile(f"def test_trains():\n    raise RuntimeError({MESSAGE!r})\n\ndef test_other():\n    raise ValueError('no')\n")
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    text = result.stdout.str()
    assert text.count("vramtrack: FRAGMENTATION") == 1


VERDICTS = f"""
    import pytest, vramtrack

    MIB = 2**20
    device = vramtrack.SimulatedDevice()
    vramtrack.set_default_source(device)
    MESSAGE = {MESSAGE!r}

    @pytest.mark.limit_gpu_leaks("0.2 MiB/iter", collect=False)
    def test_leaks():
        device.allocate(MIB)

    def test_leaks_in_a_part(gpu_leaks):
        gpu_leaks.check(lambda: device.allocate(MIB), collect=False)

    def test_leaks_until_memory_is_full(gpu_leaks):
        def body():
            held.append(0)
            if len(held) > 100:
                raise RuntimeError(MESSAGE)
            device.allocate(2 * MIB)

        held = []
        gpu_leaks.check(body, collect=False)

    def test_checks():
        vramtrack.check(lambda: device.allocate(MIB), collect=False)
"""
OWN = """

    @pytest.mark.limit_gpu_leaks
    def test_raises():
        raise RuntimeError(MESSAGE)

    def test_fails_in_its_own_words():
        pytest.fail(MESSAGE)

    def test_leaks_after_it(gpu_leaks):
        try:
            raise RuntimeError(MESSAGE)
        except RuntimeError:
            gpu_leaks.check(lambda: device.allocate(MIB), collect=False)
"""


def test_a_leak_found_by_vramtrack_is_no_out_of_memory_message(pytester):
    pytester.makepyfile(VERDICTS)
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    result.assert_outcomes(failed=4)
    text = result.stdout.str()
    assert text.count("GPU memory grows ") >= 4 and "call 101 ran out of memory" in text
    assert "Captured out of memory" not in text


def test_what_the_test_itself_raised_is_explained_beside_a_leak(pytester):
    pytester.makepyfile(VERDICTS + OWN)
    result = pytester.runpytest_subprocess(*plugin_options(), "-p", "no:cacheprovider", "--vramtrack")
    result.assert_outcomes(failed=7)
    assert result.stdout.str().count("vramtrack: FRAGMENTATION") == 3
