"""Runs the tests of a script side by side, in a few processes: for tests that wait more than they compute."""
import concurrent.futures
import io
import multiprocessing
import sys
import time
import unittest

AT_ONCE = 4


def flat(suite):
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from flat(part)
        else:
            yield part


def run(test_id):
    """(name, whether it passed, why it was skipped, what it said, seconds)"""
    begun = time.monotonic()
    name = test_id.removeprefix("__main__.")
    suite = unittest.defaultTestLoader.loadTestsFromName(name, sys.modules["__main__"])
    said = io.StringIO()
    outcome = unittest.TextTestRunner(stream=said, verbosity=0).run(suite)
    return name, outcome.wasSuccessful(), [reason for _, reason in outcome.skipped], said.getvalue(), time.monotonic() - begun


def main(at_once=AT_ONCE):
    """In the place of unittest.main(): the arguments are names of tests, by default all. Exits 1 when one has failed, as unittest does."""
    main_module = sys.modules["__main__"]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(sys.argv[1:], main_module) if sys.argv[1:] else loader.loadTestsFromModule(main_module)
    names = [test.id() for test in flat(suite)]
    begun = time.monotonic()
    # Forked, so that a test sees the script as it was loaded, and keeps its changes to itself.
    fork = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(min(at_once, max(1, len(names))), mp_context=fork) as pool:
        results = list(pool.map(run, names))
    for name, passed, reasons, said, _ in results:
        for reason in reasons:
            print(f"skipped: {name}: {reason}")
        if not passed:
            print(said)
    longest = sorted(results, key=lambda result: -result[4])[:3]
    print(f"Ran {len(results)} tests in {time.monotonic() - begun:.1f} s; longest: " + ", ".join(f"{r[0]} {r[4]:.1f} s" for r in longest))
    failed = [name for name, passed, *_ in results if not passed]
    print(f"FAILED: {' '.join(failed)}" if failed else "OK")
    sys.exit(1 if failed else 0)
