"""CPU time of this process and of everything that it started, children that still run included.

`os.times` counts a child only once it has ended: what transforms that are applied in a child of their own took would be
told late, in one sum, with the child's loading. On Linux the children's times are read from /proc as they run; where
there is no /proc, only those that have ended count.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")


def cpu_seconds() -> float:
    """Return the CPU time so far, user and system, of all threads of this process and of its descendants."""
    spent = os.times()
    ended = spent.user + spent.system + spent.children_user + spent.children_system
    return ended + sum(_ticks_of(pid) for pid in _descendants(os.getpid())) / os.sysconf("SC_CLK_TCK")


def _descendants(pid: int) -> list[int]:
    """Return the processes below `pid` that run now."""
    found: list[int] = []
    for task in (PROC / str(pid) / "task").glob("*"):
        try:
            children = [int(child) for child in (task / "children").read_text().split()]
        except OSError:  # that thread has ended
            continue
        for child in children:
            found += [child, *_descendants(child)]
    return found


def _ticks_of(pid: int) -> int:
    """Return the clock ticks that a process and its ended children took (proc(5), /proc/pid/stat, fields 14 to 17)."""
    try:
        text = (PROC / str(pid) / "stat").read_text()
    except OSError:  # it has ended; its parent counts it now
        return 0
    return sum(int(field) for field in text.rpartition(")")[2].split()[11:15])
