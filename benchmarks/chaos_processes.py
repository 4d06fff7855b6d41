"""Our own processes, known by a mark in their environment: finding them, and stopping them for good."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

MARK: Final = "CURATE_CHAOS"
"""In the environment of every process that chaos may stop: only ours carry it."""

WORKERS: Final = ("ray::run_item", "ray::run_", "ray::IDLE")
"""Titles of Ray's workers."""


def marked(mark: str) -> dict[int, str]:
    """Return pid → command line of the processes that carry our mark, and of their descendants.

    A worker of Ray writes its title over its environment, so that it is known by its parent only.
    """
    needle = f"{MARK}={mark}".encode()
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    ours: set[int] = set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        pid = int(folder.name)
        try:
            parents[pid] = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
            commands[pid] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if needle in (folder / "environ").read_bytes().split(b"\0"):
                ours.add(pid)
        except OSError:
            continue  # gone, or somebody else's
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return {pid: commands[pid] for pid in sorted(ours) if commands.get(pid)}


def stop(pid: int) -> bool:
    """Send SIGKILL; return whether the process was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def stop_all(mark: str) -> None:
    """Stop every process that carries our mark, and wait until it is gone."""
    while left := marked(mark):
        for pid in left:
            stop(pid)
        time.sleep(0.05)


def start(module: str, arguments: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start `python -m module` with `environment` added to ours, what it says going to `log`."""
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
