"""What the machine says of memory, of a process and free, and of waiting for a processor.

Linux by /proc and cgroups, elsewhere by `ps`, which knows nothing of waiting.

Cost: 10 µs a question on Linux, 5 ms on macOS, where a child is therefore asked once a second only.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

LINUX: Final = sys.platform.startswith("linux")

INTERVAL: Final = 0.025 if LINUX else 1.0
"""Seconds between two looks at a child's memory."""

_PAGE: Final = resource.getpagesize()
_CGROUP: Final = Path("/sys/fs/cgroup")


def memory_of(pid: int) -> int:
    """Return the bytes of memory that the process holds for itself (on macOS: resident), 0 when it is gone."""
    if LINUX:
        try:
            with open(f"/proc/{pid}/statm", "rb") as file:
                resident, shared = file.read().split()[1:3]
        except (OSError, ValueError):
            return 0
        return (int(resident) - int(shared)) * _PAGE
    found = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=False)
    return int(found.stdout) << 10 if found.stdout.strip().isdigit() else 0


def data_of(pid: int) -> int:
    """Return the bytes of private memory that the process has asked for, touched or not (what RLIMIT_DATA counts)."""
    with suppress(OSError, ValueError), open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[5]) * _PAGE
    return 0


def starved_seconds(pid: int) -> float:
    """Return how long the process has been ready to run without a processor; 0 where the system does not say.

    On Linux of its main thread, by the scheduler's own count (`/proc/PID/schedstat`, second number, nanoseconds).
    """
    with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/schedstat", "rb") as file:
        return int(file.read().split()[1]) / 1e9
    return 0.0


def available_memory() -> int:
    """Return the bytes that this machine, or the container that this process is in, can still give."""
    return min(_free_on_machine(), _free_in_cgroup())


def _free_on_machine() -> int:
    with suppress(OSError), open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                return int(line.split()[1]) << 10
    return int(os.sysconf("SC_PHYS_PAGES")) * _PAGE // 2  # no word on what is free: half of it


def _free_in_cgroup() -> int:
    """Return what the control group of this process and those above it leave, very much without any."""
    least = 1 << 62
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        inner = next((line[3:] for line in lines if line.startswith("0::")), "/")
        folder = _CGROUP / inner.lstrip("/")
        for place in (folder, *folder.parents):
            if not place.is_relative_to(_CGROUP):
                break
            with suppress(OSError, ValueError):
                most = int((place / "memory.max").read_text())  # "max" is no number: no bound here
                least = min(least, max(most - int((place / "memory.current").read_text()), 0))
    return least


def bound_data(pid: int, more: int) -> None:
    """Let the process ask for `more` bytes over what it has and no further: the backstop between two looks at it."""
    if LINUX:
        with suppress(OSError, ValueError):  # it may be gone already
            bound = data_of(pid) + more
            resource.prlimit(pid, resource.RLIMIT_DATA, (bound, bound))
