#!/usr/bin/env python3
"""The actions for Kubernetes on a double that answers what real API servers have answered: kubernetes.py ACT_ONCE [NAME...]

Each scenario runs once for each recorded version. Afterwards its exchanges must be of the form of those recorded: so the double cannot
drift from the servers, and a request that has changed must be recorded again (`make test-kubernetes`).
"""
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from api_double import Double, Recording  # noqa: E402
from cluster import certificates  # noqa: E402
from recorder import Recorder, difference, pruned  # noqa: E402
from scenarios import MANIFEST, ROLE, SCENARIOS, Case, chart_rbac, granted  # noqa: E402


def the_role_is_that_of_contrib():
    """The chart and the manifest grant what the scenarios use."""
    try:
        import yaml
    except ImportError:
        print("skip the_role_is_that_of_contrib: needs PyYAML")
        return
    for text in chart_rbac(), MANIFEST.read_text():
        role, = (d for d in yaml.safe_load_all(text) if d["kind"] == "ClusterRole")
        assert granted(role["rules"]) == ROLE, granted(role["rules"])


def main():
    if not shutil.which("openssl"):
        print("kubernetes: SKIPPED: openssl is not installed")
        return 77
    program, chosen = sys.argv[1], sys.argv[2:]
    recordings = sorted((Path(__file__).parent / "recorded").glob("*.json"))
    assert recordings, "tests/kubernetes/recorded is empty"
    the_role_is_that_of_contrib()
    for path in recordings:
        recording = Recording(path)
        missing = set(recording.scenarios) - {s.__name__ for s in SCENARIOS}
        assert not missing, f"{path.name}: no scenario is named {missing}"
        with tempfile.TemporaryDirectory() as one:
            folder = Path(one)
            certificates(folder)
            double = Double(recording, folder)
            with Recorder(folder, double.handle) as recorder:
                for scenario in SCENARIOS:
                    if chosen and scenario.__name__ not in chosen:
                        continue
                    double.reset()
                    double.recorder, recorder.exchanges = recorder, []
                    scenario(Case(program, double, recorder.port))
                    exchanges = pruned(recorder.exchanges, {f"pid {os.getpid()} ": "pid 4242 "})
                    said = difference(exchanges, recording.scenarios.get(scenario.__name__, []))
                    assert not said, f"{path.name}: {scenario.__name__}: {said}"
                    print(f"ok   {path.stem}  {scenario.__name__}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
