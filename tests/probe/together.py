"""Test methods that wait for programs more than they compute: several of them at a time."""
import concurrent.futures
import sys
import unittest


def main(case, jobs=8):
    """Runs the tests of a TestCase, or those that the command line names, each with its own instance; then exits."""
    wanted = sys.argv[1:]
    names = [name for name in unittest.defaultTestLoader.getTestCaseNames(case) if not wanted or name in wanted]

    def run(name):
        result = unittest.TestResult()
        case(name).run(result)
        return result

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = list(zip(names, pool.map(run, names)))
    bad = 0
    for name, result in results:
        wrong = [text for _, text in [*result.failures, *result.errors]]
        bad += bool(wrong)
        print(f"{name}: {'FAILED' if wrong else 'skipped: ' + result.skipped[0][1] if result.skipped else 'ok'}", flush=True)
        print("".join(wrong), end="", file=sys.stderr, flush=True)
    print(f"{len(results)} tests, {bad} failed")
    sys.exit(1 if bad or not results else 0)
