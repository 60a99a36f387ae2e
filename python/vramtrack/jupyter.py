"""%%vramtrack: the effect of a notebook cell on GPU memory, and what it left behind. `%load_ext vramtrack` enables it. It needs IPython."""
from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional

from vramtrack.html_table import table
from vramtrack.printable import printable
from vramtrack.profiler import GPUMemoryProfiler, ProfileResult
from vramtrack.referrers import Keeper, Kept, kept_by
from vramtrack.units import format_change, format_size

_LOOK_S = 1.0  # before and after a cell, if PyTorch is loaded
_SHOWN = 8


class CellMemory:
    """The effect of one cell. Jupyter shows it as a table, a terminal as text."""

    def __init__(self, result: ProfileResult, left: Optional[Kept], failed: bool) -> None:
        self.kept_bytes = result.memory_diff()
        self.keepers: List[Keeper] = list(left.keepers[:_SHOWN]) if left is not None else []
        self._line = (
            f"GPU memory: {format_change(result.memory_diff())} kept, {format_size(result.memory_allocated)} at the peak, "
            f"{format_size(result.memory_after.allocated_memory)} now; {result.execution_time:.2f} s"
        )
        self._notes: List[str] = []
        if failed and self.kept_bytes > 0:
            self._notes.append("The traceback of the error keeps the tensors of its frames: sys.last_value = sys.last_traceback = None frees them (import sys)")
        if any(one.path.startswith(("Out ", "_oh ", "_ ", "__ ", "___ ")) for one in self.keepers):
            self._notes.append("Results of cells are kept in Out: %reset -f out frees them; a semicolon or None at the end of a cell keeps none")

    def __repr__(self) -> str:
        left = [f"  left behind: {one}" for one in self.keepers]
        return "\n".join([self._line, *left, *(f"  {note}" for note in self._notes)])

    def _repr_html_(self) -> str:
        rows = [(one.path, f"{one.grown_tensors:+,}", format_change(one.grown_bytes), f"{one.graphs:,}") for one in self.keepers]
        return table(self._line, ("left behind in", "tensors", "bytes", "with a graph"), rows, self._notes)


def _look() -> Optional[Kept]:
    return kept_by(seconds=_LOOK_S) if "torch" in sys.modules else None


def _show(memory: CellMemory) -> None:
    try:
        from IPython.display import display
    except ImportError:  # a shell that only looks like IPython's
        print("\n".join(map(printable, repr(memory).split("\n"))))
    else:
        display(memory)


def _magic(shell: Any) -> Any:
    profilers: Dict[int, GPUMemoryProfiler] = {}

    def vramtrack(line: str, cell: Optional[str] = None) -> None:
        """%vramtrack STATEMENT, or %%vramtrack above a cell: runs it, and reports its effect on GPU memory and which variables keep it."""
        from vramtrack.sources import default_source

        source = default_source()
        profiler = profilers.setdefault(id(source), GPUMemoryProfiler(source=source))
        before = _look()
        with profiler.profile_context("cell") as result:
            done = shell.run_cell(cell if cell is not None else line)
        after = _look() if result.memory_diff() > 0 else None
        _show(CellMemory(result, after.since(before) if after is not None and before is not None else after, getattr(done, "success", True) is False))
        done.raise_error()

    return vramtrack


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext vramtrack."""
    shell.register_magic_function(_magic(shell), "line_cell", "vramtrack")
