"""What a report says of a program, against what its author marked."""
import collections
import math
import pathlib

MARK = "LEAK HERE"
Verdict = collections.namedtuple("Verdict", "word named why seconds")


def expected_line(path):
    """The marked line; None in a healthy program."""
    lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if MARK in line]
    assert len(lines) == (path.parent.name == "leaking"), f"{path} marks {len(lines)} lines"
    return lines[0] if lines else None


def own_frame(site, path):
    """The first frame of a site in the program's own file."""
    return next((frame for frame in site["frames"] if pathlib.Path(frame["file"] or "").name == path.name), None)


def words(frame, path):
    if frame is None:
        return "no frame of the program"
    return f"{frame['function']} {path.name}:{frame['line']}"[-42:]


def judge(path, report, headline):
    """`named` and `quiet` are right; `missed`, `wrong line` and `accused` are not. `headline`: the first line of the text, which
    names the same line."""
    line, leaks = expected_line(path), [site for site in report["sites"] if site["leak"]]
    if not leaks:
        return Verdict("quiet" if line is None else "missed", "", "" if line is None else summary(report), 0)
    frame = own_frame(leaks[0], path)
    if line is None:
        return Verdict("accused", words(frame, path), summary(report), 0)
    is_first = report["sites"][0] is leaks[0] and frame is not None and frame["line"] == line
    is_told = f"{path.name}:{line} " in headline
    return Verdict("named" if is_first and is_told else "wrong line", words(frame, path), "" if is_first and is_told else headline, 0)


def summary(report):
    sites = report["sites"]
    return f"{sum(site['leak'] for site in sites)} of {len(sites)} sites leak, {sum(site['live_bytes'] for site in sites)} bytes are live"


def wilson(hits, count, z=1.96):
    """The 95 % interval of a share."""
    if count == 0:
        return 0.0, 1.0
    share, squared = hits / count, z * z
    centre = (share + squared / (2 * count)) / (1 + squared / count)
    half = z * math.sqrt(share * (1 - share) / count + squared / (4 * count * count)) / (1 + squared / count)
    return max(0.0, centre - half), min(1.0, centre + half)
