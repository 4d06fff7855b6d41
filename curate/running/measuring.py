"""What a task used and said: its peak of resident memory, and what it wrote to standard output and error.

Both are those of its process while it ran. On Linux the kernel's peak is set back before each task; elsewhere, or where
that is refused, it is the peak since the process began.
"""

from __future__ import annotations

import os
import resource
import stat
import sys
from pathlib import Path
from typing import Final

OUTPUT_BYTES: Final = 16 << 10
"""The most that is kept of what a task wrote: its end."""

_MARKS: Final = (":job_id:", ":task_name:", ":actor_name:")  # lines of Ray's own in its workers' files


def reset_peak() -> None:
    """Begin to measure the peak anew."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def peak_mb() -> int:
    """Return the peak of resident memory in MiB."""
    try:
        with open("/proc/self/status", "rb") as file:
            lines = [line for line in file if line.startswith(b"VmHWM:")]
        return int(lines[0].split()[1]) // 1024
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak // 1024 if sys.platform != "darwin" else peak >> 20


class Output:
    """What this process writes to files of standard output and error from now on; a terminal is left alone."""

    def __init__(self) -> None:
        self._began = {descriptor: _size(descriptor) for descriptor in (1, 2)}

    def text(self) -> str:
        """Return the end of what was written, output before error."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        return "".join(_written(descriptor, began) for descriptor, began in self._began.items())


def _size(descriptor: int) -> int | None:
    """Return the size of the file that `descriptor` appends to; None where it is none."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _written(descriptor: int, began: int | None) -> str:
    end = _size(descriptor)
    if began is None or end is None or end <= began:
        return ""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""
    return tail(path, began)


def tail(path: str, begin: int = 0, most: int = OUTPUT_BYTES) -> str:
    """Return the last `most` bytes of the file at `path` from byte `begin` on, without lines of Ray's own."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - most))
            text = file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(_MARKS))
