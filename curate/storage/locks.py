"""Lock files that TensorStore's writers leave on a local file system when they are killed: `<name>.__lock`.

curate writes shards of caches whole and takes no such lock; who writes into a store with TensorStore does. A living
writer holds a POSIX lock on its file, so that a file which is not locked, and is not just being made, is left over.
"""

from __future__ import annotations

import fcntl
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

SUFFIX: Final = ".__lock"

YOUNG_SECONDS: Final = 60.0
"""Lock files younger than this may be on their way from being made to being locked."""


def sweep_locks(folder: Path) -> int:
    """Remove the lock files below `folder` whose writers are gone; return how many."""
    swept = 0
    for path in sorted(folder.rglob(f"*{SUFFIX}")):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > YOUNG_SECONDS and _is_free(path):
                path.unlink()
                swept += 1
    return swept


def _is_free(path: Path) -> bool:
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
