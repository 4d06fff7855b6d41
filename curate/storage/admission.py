"""Who may write to an object store: settled once by the driver, before anything is written.

Many writers need a server that refuses to create what is there: this is tried, in each way in which objects are
created. A server that does not is refused, unless the caller says that there is one driver; then a note in the store
keeps a second one out. The note is a courtesy between drivers that start apart, no lock: of two that start in the same
second both are stopped, as each reads it back.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curate.digests import digest_file
from curate.storage.errors import StoreError
from curate.storage.requests import TakenError
from curate.storage.spool import is_alive, spool_name

if TYPE_CHECKING:
    from curate.storage.objects import ObjectFiles

NOTE: Final = "runs/exclusive.json"
"""Who writes to a store with one writer."""

SETTLE_SECONDS: Final = 1.0


def check_conditions(files: ObjectFiles) -> None:
    """Check that the server refuses to create an object that is there.

    Raises:
        StoreError: it does not, or cannot be asked.
    """
    files.spool.mkdir(parents=True, exist_ok=True)
    source = files.spool / spool_name()
    source.write_bytes(b"written by curate to see whether this server honours conditions; may be removed\n")
    try:
        for way, create in files.client.creations().items():
            if not _refuses(files, source, create):
                raise StoreError(
                    f"{files.location}: the server ignores conditions of writes ({way}): where several attempts at one "
                    "task end at once, one would overwrite the other unseen. Take a store that honours If-None-Match, "
                    "or a local folder; with --exclusive this one can be written to by a single driver"
                )
    finally:
        source.unlink(missing_ok=True)


def _refuses(files: ObjectFiles, source: Path, create: Callable[[str, Path, str], None]) -> bool:
    key, digest = f"{files.prefix}runs/probe-{uuid.uuid4().hex}", digest_file(source)
    try:
        create(key, source, digest)
        try:
            create(key, source, digest)
        except TakenError:
            return True
        return False
    finally:
        with suppress(StoreError):
            files.client.delete(key)


@contextmanager
def one_writer(files: ObjectFiles, settle: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Keep other drivers out while this one writes.

    Raises:
        StoreError: another one writes, or was killed while it did.
    """
    mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "token": uuid.uuid4().hex}).encode()
    _refuse_other(files)
    files.put(NOTE, mine)
    settle(SETTLE_SECONDS)
    if files.read(NOTE) != mine:
        raise StoreError(f"{files.url(NOTE)}: another driver began to write at the same moment: start one of them")
    try:
        yield
    finally:
        with suppress(StoreError, FileNotFoundError):
            if files.read(NOTE) == mine:
                files.remove(NOTE)


def _refuse_other(files: ObjectFiles) -> None:
    try:
        found = json.loads(files.read(NOTE))
    except (FileNotFoundError, ValueError):
        return
    if found["host"] == socket.gethostname() and not is_alive(found["pid"]):
        return  # it was killed
    raise StoreError(
        f"{files.url(NOTE)}: process {found['pid']} on {found['host']} writes to this store, and on this server only "
        "one may. Wait for it; if it is dead, remove that object"
    )
