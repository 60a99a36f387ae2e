"""%%vramtrack: what a notebook cell did to GPU memory. `%load_ext vramtrack` enables it. It needs IPython."""
from __future__ import annotations

from typing import Any, Dict, Optional

from vramtrack.profiler import GPUMemoryProfiler
from vramtrack.units import MIB


def _magic(shell: Any) -> Any:
    profilers: Dict[int, GPUMemoryProfiler] = {}

    def vramtrack(line: str, cell: Optional[str] = None) -> None:
        """%vramtrack STATEMENT, or %%vramtrack above a cell: runs it and prints what it did to GPU memory."""
        from vramtrack.sources import default_source

        source = default_source()
        profiler = profilers.setdefault(id(source), GPUMemoryProfiler(source=source))
        with profiler.profile_context("cell") as result:
            done = shell.run_cell(cell if cell is not None else line)
        print(
            f"GPU memory: {result.memory_diff() / MIB:+.1f} MiB kept, {result.memory_allocated / MIB:.1f} MiB at the peak, "
            f"{result.memory_after.allocated_memory / MIB:.1f} MiB now; {result.execution_time:.2f} s"
        )
        done.raise_error()

    return vramtrack


def load_ipython_extension(shell: Any) -> None:
    """Called by %load_ext vramtrack."""
    shell.register_magic_function(_magic(shell), "line_cell", "vramtrack")
