#!/usr/bin/env python3
"""Measures how often `vramtrack explain` is right on the messages of messages.txt.

    bench/explain/run.py build/release/vramtrack [FILE]

An answer is right if its cause is one of the message's, it tells that the program continued where it did, and it has none
of the words that it must not have. Prints those that are not, then the figures by class. Exit code: 0 at least 85 % are
right, 1 fewer are, 2 the arguments are wrong.
"""
import collections
import json
import pathlib
import subprocess
import sys

LEAST_SHARE = 0.85


def messages(path):
    """Yields (number, program, kind, memory, causes, never, text) of each message."""
    head, lines = None, []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("%%% "):
            if head:
                yield (*head, "\n".join(lines) + "\n")
            number, program, kind, memory, causes, never, _ = (field.strip() for field in line[4:].split("|"))
            head, lines = (number, program, kind, memory, causes.split(), [w for w in never.split(";") if w]), []
        elif head:
            lines.append(line)
    if head:
        yield (*head, "\n".join(lines) + "\n")


def answer(binary, text):
    """The causes that the answer gives, and its words."""
    run = subprocess.run([binary, "explain", "--format", "json"], input=text, capture_output=True, text=True, check=False)
    if run.returncode == 1:
        return ({"none", "survived"} if "the program went on" in run.stderr else {"none"}), run.stderr
    explanation = json.loads(run.stdout)
    failure = explanation["failures"][explanation["decisive"]]
    words = " ".join(explanation[key] for key in ("because", "fault", "next_step", "would_tell"))
    return {"survived" if failure.get("went_on") else explanation["cause"]}, words


def main(arguments):
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    path = pathlib.Path(arguments[1]) if len(arguments) == 2 else pathlib.Path(__file__).with_name("messages.txt")
    count, right = collections.Counter(), collections.Counter()
    for number, program, kind, memory, causes, never, text in messages(path):
        given, words = answer(arguments[0], text)
        bad = [word for word in never if word in words]
        is_right = bool(given & set(causes)) and not bad
        if not is_right:
            said = f"{', '.join(sorted(given))}{', with ' + bad[0] if bad else ''}"
            print(f"{number} {program}: {' or '.join(causes)}, but {said}: {words.strip()[:160]}")
        outcome = causes[0] if causes[0] in ("none", "survived") else "failed"
        for group in ("all", f"program {kind}", f"outcome {outcome}", f"memory {memory}"):
            count[group] += 1
            right[group] += is_right
    for group in sorted(count):
        print(f"{group:<20} {right[group]:>4} of {count[group]:>4} right")
    return 0 if right["all"] >= LEAST_SHARE * count["all"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
