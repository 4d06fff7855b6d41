"""Spool files: what is being written, on this node, before it is published. Their names say whose they are."""

from __future__ import annotations

import os
import socket
import uuid
from pathlib import Path
from typing import Final

SPOOL: Final = "spool"
"""Name of the folder of spool files."""


def spool_name() -> str:
    """Return a new name: host, process, and what no other file has."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"


def remove_stale(folder: Path) -> int:
    """Remove spool files of processes of this host that are gone; return how many."""
    stale = 0
    for path in sorted(folder.glob(f"{socket.gethostname()}-*")):
        pid = path.name.removeprefix(f"{socket.gethostname()}-").split("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists() and not is_alive(int(pid)):
            path.unlink(missing_ok=True)
            stale += 1
    return stale


def is_alive(pid: int) -> bool:
    """Return whether this host has a process `pid`."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
