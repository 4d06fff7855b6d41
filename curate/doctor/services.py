"""Ray, tried in a process of its own, and a store, tried with the rights that a run needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from curate.doctor.finding import Finding
from curate.doctor.machine import GIB
from curate.store import Store, StoreError

RAY_SECONDS: Final = 120
STORE_BYTES: Final = 5 * GIB
_TRY_RAY: Final = """
import ray
from curate.cluster.clusters import StartedRay
cluster = StartedRay(1)
cluster.connect()
try:
    print("answer", ray.get(ray.remote(lambda: 6 * 7).remote(), timeout=60))
finally:
    cluster.disconnect()
"""


def look_at_ray(program: str = _TRY_RAY) -> Iterator[Finding]:
    """Yield whether a Ray starts here as a run starts it, and runs a task; about 5 s."""
    remedy = "curate run --runner local needs no Ray; docs/faq.md, Ray does not start"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=RAY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        yield Finding("ray", "problem", f"no answer of a task within {RAY_SECONDS} s", remedy)
        return
    if "answer 42" in done.stdout:
        yield Finding("ray", "ok", "starts, and runs a task")
    else:
        last = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
        yield Finding("ray", "problem", f"does not start: {last[:200]}", remedy)


def look_at_store(store: Store) -> Iterator[Finding]:
    """Yield whether `store` can be read and written as a run does it."""
    yield from (_bucket(store) if store.is_remote else _folder(Path(store.url(""))))


def _bucket(store: Store) -> Iterator[Finding]:
    try:
        count = len(store.folders())
        with store.writing():  # creates an object, tries to create it again, removes it
            pass
    except (ImportError, OSError, StoreError) as error:
        yield Finding("store", "problem", str(error), "docs/storage.md, Credentials, has the rights that a run needs")
        return
    yield Finding("store", "ok", f"{store}: {count} folders; objects are created on condition, and removed")


def _folder(root: Path) -> Iterator[Finding]:
    there = next(folder for folder in (root.absolute(), *root.absolute().parents) if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield Finding("store", "problem", f"{there} is no folder that you can write", "give another --store")
        return
    free = shutil.disk_usage(there).free
    links = "hard links" if _has_hard_links(there) else "no hard links: files are claimed by name instead"
    said = f"{free / GIB:.1f} GiB free in {there}; {links}"
    if free < STORE_BYTES:
        yield Finding("store", "warning", said, "a run keeps about its input's size in text; curate plan --cost says")
    else:
        yield Finding("store", "ok", said)


def _has_hard_links(folder: Path) -> bool:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".curate-doctor-") as room, suppress(OSError):
        first = Path(room, "first")
        first.write_bytes(b"")
        os.link(first, Path(room, "second"))
        return True
    return False
