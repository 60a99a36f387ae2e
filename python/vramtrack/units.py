"""Sizes in bytes as text, by the rule of the program's format_size() (src/core/format.hpp), and nowhere else in the package."""
from __future__ import annotations

KIB = 2**10
MIB = 2**20
GIB = 2**30


def format_size(bytes_: float) -> str:
    """ "12.3 GiB", "45.6 MiB", "7.8 KiB", "90 bytes"; "-1.0 MiB" below zero. What is not a finite number counts as none."""
    whole = round(bytes_) if abs(bytes_) < float("inf") else 0
    if abs(whole) < KIB:
        return f"{whole} byte{'' if abs(whole) == 1 else 's'}"
    value, units = whole / KIB, ["TiB", "GiB", "MiB", "KiB"]
    while abs(value) >= 1023.95 and len(units) > 1:  # 1023.96 would be written as 1024.0
        value /= 1024
        units.pop()
    return f"{value:.1f} {units[-1]}"


def format_change(bytes_: float) -> str:
    """ "+12.3 MiB", "-1.0 KiB", "0 bytes"."""
    words = format_size(bytes_)
    return f"+{words}" if words[0] not in "-0" else words


def format_rate(bytes_per_s: float) -> str:
    """ "12.4 MiB/min", "0.30 MiB/min", "250 MiB/min"; "0 MiB/min" if it rounds to nothing; "17.0 GiB/min" from 10 GiB/min on."""
    per_min = bytes_per_s * 60 if abs(bytes_per_s) < float("inf") else 0.0
    unit, name = (GIB, "GiB") if abs(per_min) >= 10 * GIB else (MIB, "MiB")
    per_min /= unit
    words = f"{per_min:.{0 if abs(per_min) >= 100 else 1 if abs(per_min) >= 1 else 2}f}"
    return f"{words if words.strip('-0.') else '0'} {name}/min"
