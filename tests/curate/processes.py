"""Processes as tests of the command line see them: what descends from a command, and what is left of it."""

from __future__ import annotations

import time
from pathlib import Path


def _parents() -> dict[int, int]:
    """Return pid → parent of every process that is no zombie."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:2]
            except OSError:
                continue  # gone meanwhile
            if state != b"Z":
                found[int(folder.name)] = int(parent)
    return found


def descendants(pid: int) -> set[int]:
    """Return the processes below `pid`."""
    parents = _parents()
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {pid}


def left_of(pids: set[int], seconds: float = 60.0) -> dict[int, str]:
    """Return pid → command line of those that are still there after so many seconds."""
    until = time.monotonic() + seconds
    while (left := pids & set(_parents())) and time.monotonic() < until:
        time.sleep(0.1)
    commands = {}
    for pid in left:
        try:
            commands[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return commands
