#!/usr/bin/env python3
"""How soon the agent names the line of a program that was already running: in its alert, and in the record of a policy's dry run.

    sudo bench/live_alert.py VRAMTRACK KEEPER FAKE_NVML [--minutes N]

KEEPER: the program that the tests trace (traced_keeper), which keeps 4 MiB a second. FAKE_NVML reports as much, beside the 20 GiB that it is said to have
held before: of a program that holds next to nothing when it is first seen, a rise may be its loading. The agent watches with `--telemetry` and has a policy
that would end the program. Takes some minutes of real time: the judge waits that long for any leak.
"""
import argparse
import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests/telemetry"), str(HERE.parent / "tests/agent")]
from programs import Program  # noqa: E402
from running import Agent, Sandbox  # noqa: E402

POLICY = '[act]\nenabled = true\ndry-run = true\n[[policy]]\nname = "leaks"\nwhen.user = ["root"]\nwhen.command = "keeper"\nsteps = [{ do = "terminate" }]\n'


def recorded(box):
    """What the policy would have done, by the record."""
    for path in box.path.rglob("*.acts.jsonl"):
        for line in path.read_text().splitlines():
            if (entry := json.loads(line))["event"] == "would":
                return entry
    return None


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("binary", type=pathlib.Path)
    options.add_argument("keeper", type=pathlib.Path)
    options.add_argument("nvml", type=pathlib.Path)
    options.add_argument("--minutes", type=float, default=20)
    options = options.parse_args()
    with Sandbox(options.binary) as box:
        program = Program(options.keeper.resolve())
        box.write("nvml.txt", f"gpu 0 uuid=GPU-one total=80G used=1G\nprocess gpu=0 pid={program.pid} list=C used=20G+4M\n")
        box.write("policy.toml", POLICY)
        begun = time.monotonic()
        with Agent(box, "--source", "nvml", "--set", f"sources.nvml-library={options.nvml.resolve()}", "--interval", "1s", "--telemetry", "--config",
                   str(box.work / "policy.toml"), simulate=False, env={"VRAMTRACK_FAKE_NVML": str(box.work / "nvml.txt")}) as agent:  # fmt: skip
            alert = entry = None
            while time.monotonic() < begun + 60 * options.minutes and not (alert and entry):
                program.do("k4")
                time.sleep(1)
                entry = recorded(box)
                if not alert and (alert := next((a for a in agent.get("/api/v1/alerts")["alerts"] if a["pid"] == program.pid), None)):
                    print(f"alert after {time.monotonic() - begun:.0f} s: {alert['finding']['because']}", flush=True)
        program.end()
    if not (alert and entry):
        sys.exit("no alert and record within the time")
    print(f"record: {entry['policy']}: {entry['action']}: {entry['event']}: {entry['evidence']['because']}")


if __name__ == "__main__":
    main()
