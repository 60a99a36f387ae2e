#!/usr/bin/env python3
"""How often the right line is named: programs that leak, and healthy ones, under `vramtrack run`.

    measure.py [--build BUILD] [--jobs N] [--torch VERSION] [--keep FOLDER] [--attach | --watch] [PATTERN...]

leaking/ and healthy/ hold a program a file; what comes before the first "_" is its API. The comment LEAK HERE marks the
line that must be named: the first site of the report is a leak, and its first frame in the program's own file is that
line. In a healthy program no site may be a leak. --gpu runs those of CUDA and PyTorch on the GPU, the driver and the
PyTorch of this machine (the latter that of the Python that runs this), and the others not at all. --attach starts each program first,
and attaches `trace live` to it ten seconds later (root; attached_run.py). --watch runs them under `run --watch` and also measures how soon their line is
named while they run (watched_run.py). The exit status is 1 only where a program could not be run.
"""
import argparse
import concurrent.futures
import contextlib
import fnmatch
import os
import pathlib
import sys
import tempfile
import time

from apis import APIS, OWN, Failed, Unavailable
from attached_run import attached_report_of, counted_together
from judging import Verdict, expected_line, judge, wilson
from traced_run import report_of
from watched_run import watched_report_of

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
SUSPECTED, LEAK = "SUSPECTED leak", "LEAK"


def programs(patterns):
    """(folder, path) of each, the APIs in their order; `leaking/torch_*` and `torch_losses` are patterns."""
    found = sorted(path for folder in ("leaking", "healthy") for path in (HERE / folder).iterdir() if path.suffix in (".c", ".cpp", ".py"))
    wanted = [path for path in found if not patterns or any(fnmatch.fnmatch(path.stem, p) or fnmatch.fnmatch(f"{path.parent.name}/{path.stem}", p)
                                                            for p in patterns)]  # fmt: skip
    order = list(APIS)
    return sorted(wanted, key=lambda path: (path.parent.name == "healthy", order.index(api_name(path)), path.stem))


def api_name(path):
    return next(name for name in sorted(APIS, key=len, reverse=True) if path.stem.startswith(name + "_"))


def measure(path, options, work):
    begun = time.monotonic()
    try:
        name = api_name(path)
        if options.gpu and name not in OWN:
            raise Unavailable("not on this machine's GPU")
        api = OWN[name] if options.gpu else APIS[name]
        command, environment = api.prepared(path, options)
        folder, goes_on = work / f"{path.parent.name}-{path.stem}", True
        if options.attach:
            report, headline, goes_on = attached_report_of(path, command, environment, options, folder)
        elif options.watch:
            report, headline, named = watched_report_of(path, command, environment, options, folder)
            options.named[path] = named
        else:
            report, headline = report_of(command, environment, options, folder)
        verdict = judge(path, report, headline)
        why = verdict.why if goes_on else f"{verdict.why} (it ended while it was traced)".strip()
        return verdict._replace(why=why, seconds=time.monotonic() - begun)
    except Unavailable as reason:
        return Verdict("skipped", "", str(reason), 0)
    except Failed as reason:
        return Verdict("failed", "", str(reason), time.monotonic() - begun)


def total(name, right, verdicts):
    judged = [one for one in verdicts if one.word not in ("skipped", "failed")]
    hits = sum(one.word == right for one in judged)
    low, high = wilson(hits, len(judged))
    print(f"{name}: {right} {hits} of {len(judged)} (95 %: {100 * low:.1f} to {100 * high:.1f} %), "
          f"{sum(one.word == 'skipped' for one in verdicts)} skipped, {sum(one.word == 'failed' for one in verdicts)} failed")


def first_named(path, named, words):
    """Seconds until the marked line, or in a healthy program any line, was named with one of these words; None: it was not."""
    line = expected_line(path)
    return min((at_s for (word, where), at_s in named.items() if word in words and line in (None, int(where.rpartition(":")[2]))), default=None)


def print_times(named):
    for words, means in (((SUSPECTED, LEAK), "suspected or reported as a leak"), ((LEAK,), "reported as a leak")):
        for folder in ("leaking", "healthy"):
            of_it = {path: first_named(path, its, words) for path, its in named.items() if path.parent.name == folder}
            times = sorted(at_s for at_s in of_it.values() if at_s is not None)
            middle = f", after {times[len(times) // 2]:.0f} s in the median, {times[-1]:.0f} s at most" if times else ""
            print(f"{folder}, while they ran: {means} {len(times)} of {len(of_it)}{middle}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--binary", type=pathlib.Path, help="the vramtrack that runs and reports, if not that of BUILD")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="on this machine's GPU instead of doubles of the drivers")
    parser.add_argument("--attach", action="store_true", help="start the programs first, and attach `trace live` to each ten seconds later (root)")
    parser.add_argument("--watch", action="store_true", help="run them under `run --watch`, and measure how soon the line is named")
    parser.add_argument("--torch", default="2.15.0", help="the version of PyTorch")
    parser.add_argument("--keep", type=pathlib.Path, help="where traces and reports are kept")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.binary = (options.binary or options.build / "vramtrack").resolve()
    chosen, options.events, options.named = programs(options.patterns), {}, {}
    of_torch = [path for path in chosen if api_name(path) == "torch"]
    if (options.attach or options.watch) and of_torch:
        with contextlib.suppress(Unavailable, Failed):  # each program says so itself
            options.events = counted_together(options, "torch", *(OWN if options.gpu else APIS)["torch"].prepared(of_torch[0], options), of_torch)
    verdicts = {}
    print(f"{'program':32} {'API':11} {'line':>4}  {'named first':42} verdict")
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = (options.keep or pathlib.Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        for path, one in zip(chosen, pool.map(lambda path: measure(path, options, work), chosen)):
            verdicts[path] = one
            print(f"{path.parent.name + '/' + path.stem:32} {api_name(path):11} {expected_line(path) or '-':>4}  {one.named:42} "
                  f"{one.word}{': ' + one.why if one.why else ''}", flush=True)  # fmt: skip
    print(f"{os.cpu_count()} cores, {sum(one.seconds for one in verdicts.values()):.0f} s of runs")
    for folder, right in (("leaking", "named"), ("healthy", "quiet")):
        total(folder, right, [one for path, one in verdicts.items() if path.parent.name == folder])
    if options.named:
        print_times(options.named)
    return 1 if any(one.word == "failed" for one in verdicts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
