#!/usr/bin/env python3
"""How often the variable that keeps memory is named: Python programs that leak, and healthy ones, under `vramtrack run`.

    measure.py [--build BUILD] [--jobs N] [--python PYTHON] [--keep FOLDER] [PATTERN...]

They run on the double of CUDA's driver: no GPU, no framework. A leaking program ends with a line "# KEPT BY NAME" for each variable that
keeps memory ("NAME|NAME": either), one in leaking/, none to three in several/. It is right if the report has as many findings, each of them
a leak, and for each name one of them whose words about what keeps it hold that name. A healthy program is right if the report has no
finding. The exit status is 1 where a program could not be run, or where more go wrong than --may-fail (default 4) of leaking/ and of
several/, or any of the healthy ones.
"""
import argparse
import concurrent.futures
import fnmatch
import itertools
import pathlib
import re
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / "programs"))
from apis import Failed  # noqa: E402
from judging import wilson  # noqa: E402
from traced_run import report_of  # noqa: E402


FOLDERS = ("leaking", "several", "healthy")


def keepers(path):
    """For each finding the pattern of the variable's name; none in a healthy program."""
    names = re.findall(r"^# KEPT BY (\S+)$", path.read_text(), re.MULTILINE)
    wanted = {"leaking": len(names) == 1, "healthy": not names, "several": True}
    assert wanted[path.parent.name], f"{path} does not end as its folder wants it"
    return [rf"\b({name})\b" for name in names]


def judged(path, report):
    """(whether the number of findings is right, whether what keeps them is, what was said)"""
    names, findings = keepers(path), report["findings"]
    said = "; ".join(f"{'leak' if one['leak'] else 'suspected'} at {pathlib.Path(one['site']).name}, "
                     f"{'kept by ' + one['kept_by']['words'] if one['kept_by'] else 'no keeper: ' + one['no_keeper_because']}" for one in findings) or "no finding"  # fmt: skip
    words = [one["kept_by"]["words"] if one["kept_by"] else "" for one in findings]
    is_counted = len(findings) == len(names) and all(one["leak"] for one in findings)
    is_named = any(all(re.search(name, its) for name, its in zip(names, order)) for order in itertools.permutations(words, len(names)))
    return is_counted, is_named, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=SOURCE / "build/release")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--python", default=sys.executable, help="the Python that runs the programs")
    parser.add_argument("--keep", type=pathlib.Path, help="where traces and reports are kept")
    parser.add_argument("--may-fail", type=int, default=4, help="of the leaking programs")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.binary = options.build / "vramtrack"
    driver = options.build / "tests/probe/cuda/driver"
    if not (driver / "libcuda.so.1").exists():
        raise SystemExit(f"{driver} has no double of CUDA's driver: cmake --build {options.build} --target vramtrack probe_library probe_library_cuda probe_driver")
    environment = {"LD_LIBRARY_PATH": str(driver), "PYTHONPATH": str(SOURCE / "tests/probe/site-packages"), "PYTHONDONTWRITEBYTECODE": "1"}
    chosen = [path for folder in FOLDERS for path in sorted((HERE / folder).glob("*.py"))
              if not options.patterns or any(fnmatch.fnmatch(path.stem, pattern) for pattern in options.patterns)]  # fmt: skip
    wrong, failed, counted, named = {folder: [] for folder in FOLDERS}, 0, 0, 0
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        work = (options.keep or pathlib.Path(temporary)).resolve()
        made = [pool.submit(report_of, [options.python, path], environment, options, work / f"{path.parent.name}-{path.stem}") for path in chosen]
        for path, run in zip(chosen, made):
            try:
                is_counted, is_named, said = judged(path, run.result()[0])
            except Failed as reason:
                is_counted, is_named, said, failed = False, False, str(reason), failed + 1
            is_right = is_counted and is_named
            if path.parent.name == "several":
                counted, named = counted + is_counted, named + is_named
            print(f"{path.parent.name + '/' + path.stem:28} {'right' if is_right else 'WRONG':6} {said}", flush=True)
            if not is_right:
                wrong[path.parent.name].append(path)
    for folder, names in wrong.items():
        count = sum(path.parent.name == folder for path in chosen)
        low, high = wilson(count - len(names), count)
        print(f"{folder}: {count - len(names)} of {count} right (95 %: {100 * low:.1f} to {100 * high:.1f} %)")
    print(f"several: as many findings as keepers in {counted}, each keeper named in {named}")
    return 1 if failed or max(len(wrong["leaking"]), len(wrong["several"])) > options.may_fail or wrong["healthy"] else 0


if __name__ == "__main__":
    sys.exit(main())
