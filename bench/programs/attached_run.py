"""A program that is already running, traced by `vramtrack trace live` (root), and the report of its trace.

The programs end within moments on the doubles. So their second half is stretched (pace/): each sleeps in the turns of its loops and in the
calls of its functions, for PACED_S in all. How many of these there are is counted in a run before, which nothing traces. The first half
is what the program has done before anybody looked: start-up and caches that fill are over by then, as they are in one that has run for long.
Then it waits until the tracer is there, so that a busy machine sees as much of it as an idle one.
"""
import os
import pathlib
import shutil
import signal
import subprocess
import time

from apis import Failed
from traced_run import LIMIT_S, read_report

PACE = pathlib.Path(__file__).resolve().parent / "pace"
NOTHING_SEEN = "no process of the program used a GPU API"
PACED_S, BEFORE_S, TRACED_S = 50, 10, 40


def paced(told, pause_s, begin, environment):
    return {**os.environ, **environment, "PACE_TOLD": str(told), "PACE_PAUSE_S": f"{pause_s:.9f}", "PACE_BEGIN": str(begin)}


def with_pace(command, path):
    """pace.c is linked into programs of C and C++."""
    return [str(word) for word in ([command[0], PACE / "run.py", path] if path.suffix == ".py" else command)]


def events_of(command, environment, path, folder, known):
    if known is not None:
        return max(1, int(known.read_text()))
    told = folder / "events"
    with open(folder / "counted", "w") as said:
        done = subprocess.run(with_pace(command, path), cwd=folder, env=paced(told, 0, 0, environment), stdout=said, stderr=said, timeout=LIMIT_S)
    if done.returncode or not told.exists():
        raise Failed(f"status {done.returncode}: {(folder / 'counted').read_text().strip()[-200:]}")
    return max(1, int(told.read_text()))


def counted_together(options, module, command, environment, chosen):
    """Where importing the module takes long: the events of all of its programs, counted in forks of one Python."""
    folder = options.build / "bench_programs" / f"events-{module}"
    folder.mkdir(parents=True, exist_ok=True)
    known = {f"{path.parent.name}.{path.stem}": path for path in chosen}
    missing = [str(path) for name, path in known.items() if not (folder / name).exists() or (folder / name).stat().st_mtime < path.stat().st_mtime]
    if missing:
        with open(folder / "output", "w") as said:
            subprocess.run([str(command[0]), str(PACE / "run.py"), "--count", module, str(folder), *missing], cwd=folder, stdout=said, stderr=said,
                           env={**os.environ, **environment}, timeout=LIMIT_S * 10)  # fmt: skip
    return {name: folder / name for name in known if (folder / name).exists()}


def waited_for(path, process):
    end = time.monotonic() + LIMIT_S
    while not path.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.05)


def attached_report_of(path, command, environment, options, folder):
    """The report of what was traced of the program from BEFORE_S after the begin of its second half on: the JSON, the first line of the text,
    and whether the program continued for as long as it was traced."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    told, trace = folder / "run", folder / "trace"
    events = events_of(command, environment, path, folder, options.events.get(f"{path.parent.name}.{path.stem}"))
    begin = max(1, events // 2)
    pause_s = PACED_S / (events - begin + 1)
    with open(folder / "output", "w") as said:
        program = subprocess.Popen(with_pace(command, path), cwd=folder, env=paced(told, pause_s, begin, environment), stdout=said, stderr=said)
        try:
            waited_for(folder / "run.begun", program)
            time.sleep(BEFORE_S)
            if program.poll() is not None:
                raise Failed("it has ended before it could be traced")
            tracer = subprocess.Popen([options.binary, "trace", "live", "--pid", str(program.pid), "--output", trace], cwd=folder,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")  # fmt: skip
            out = tracer.stdout.readline()
            (folder / "run.go").touch()
            time.sleep(TRACED_S)
            goes_on = program.poll() is None
            tracer.send_signal(signal.SIGINT)
            rest, error = tracer.communicate(timeout=LIMIT_S)
        finally:
            program.kill()
            program.wait()
    (folder / "tracer").write_text(out + rest + error)
    if NOTHING_SEEN in error:
        return {"sites": []}, "", goes_on
    if not trace.exists():
        raise Failed(f"trace live: {error.strip()[-200:]}")
    return (*read_report(trace, options, folder), goes_on)
