"""A program under `vramtrack run`, and the report of its trace."""
import json
import os
import subprocess

from apis import NO_DEVICE, Failed, Unavailable

LIMIT_S = 300


def call(command, what, folder, environment, statuses=(0,)):
    try:
        done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=LIMIT_S, errors="replace")  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"{what}: not done after {LIMIT_S} s") from None
    if done.returncode == NO_DEVICE:
        raise Unavailable(done.stderr.strip() or done.stdout.strip())
    if done.returncode not in statuses:
        (folder / "stderr").write_text(done.stderr)
        said = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("vramtrack: recorded")]
        raise Failed(f"{what}: status {done.returncode}: {said[-1] if said else 'no output'}")
    return done


def own_folders(folder):
    return {"XDG_RUNTIME_DIR": str(folder / "runtime"), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}


def read_report(trace, options, folder):
    """The JSON, and the first line of the text."""
    environment = {**os.environ, **own_folders(folder)}
    read = [options.binary, "trace", "report", trace]
    leaks = (0, 1, 3)  # 1: a line leaks; 3: one is suspected
    report = call([*read, "--format", "json"], "report", folder, environment, leaks).stdout
    text = call(read, "report", folder, environment, leaks).stdout
    (folder / "report.json").write_text(report)
    (folder / "report.txt").write_text(text)
    return json.loads(report), text.partition("\n")[0]


def report_of(command, environment, options, folder):
    """The report of the program's run: the JSON, and the first line of the text. `folder` is made, and gets trace and reports."""
    runtime = folder / "runtime"
    runtime.mkdir(parents=True, exist_ok=True, mode=0o700)
    trace = folder / "trace"
    trace.unlink(missing_ok=True)
    ran = call([options.binary, "run", "--output", trace, "--probe", options.build / "probe", "--", *command], "run", folder,
               {**os.environ, **environment, **own_folders(folder)})  # fmt: skip
    if not trace.exists():
        raise Failed(f"run: no trace: {ran.stderr.strip()}")
    return read_report(trace, options, folder)
