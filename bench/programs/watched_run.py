"""A program under `vramtrack run --watch`: the report of its trace, and when its lines were first named while it ran.

Its second half is stretched, as where it is attached to (attached_run.py), so that there is a time in which a line can be named.
"""
import re
import shutil
import subprocess
import threading
import time

from apis import Failed
from attached_run import PACED_S, events_of, paced, waited_for, with_pace
from traced_run import LIMIT_S, own_folders, read_report

NAMED = re.compile(r"(SUSPECTED leak|LEAK) at (\S+)")


def watched_report_of(path, command, environment, options, folder):
    """The report's JSON, the first line of its text, and of each word ("LEAK", "SUSPECTED leak") the seconds from the begin of the second half until
    each FILE:LINE was named with it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "runtime").mkdir(parents=True, mode=0o700)
    told, trace = folder / "run", folder / "trace"
    events = events_of(command, environment, path, folder, options.events.get(f"{path.parent.name}.{path.stem}"))
    begin = max(1, events // 2)
    run = [options.binary, "run", "--watch", "--output", trace, "--probe", options.build / "probe", "--", *with_pace(command, path)]
    named, begun_s = {}, None
    with open(folder / "output", "w") as said:
        program = subprocess.Popen([str(word) for word in run], cwd=folder, stdout=said, stderr=subprocess.PIPE, text=True, errors="replace",
                                   env={**paced(told, PACED_S / (events - begin + 1), begin, environment), **own_folders(folder)})  # fmt: skip
        lines = []

        def listen():
            for line in program.stderr:
                lines.append(line)
                if found := NAMED.search(line):
                    named.setdefault((found[1], found[2].rstrip(":")), time.monotonic())

        listener = threading.Thread(target=listen)
        listener.start()
        try:
            waited_for(folder / "run.begun", program)
            begun_s = time.monotonic()
            (folder / "run.go").touch()
            program.wait(LIMIT_S)
        finally:
            program.kill()
            listener.join()
    (folder / "stderr").write_text("".join(lines))
    if not trace.exists():
        raise Failed(f"run: no trace: {''.join(lines).strip()[-200:]}")
    return (*read_report(trace, options, folder), {key: at_s - begun_s for key, at_s in named.items()})
