"""How a store that is not a local folder is reached. Never credentials: those are the SDK's own affair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Writers = Literal["many", "one"]
"""Who may write: any number of drivers and workers at once, or one driver that publishes each file once."""


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Options of remote stores; a local store needs none.

    Attributes:
        endpoint: URL of the server, None for the cloud's own.
        region: of an S3 bucket.
        requests: how many requests one process has in flight at most.
        retries: how often a request is tried again when the server is busy or the connection is lost.
        cache: folder on this node for copies of remote files and for spool files, None for one below the system's
            folder for temporary files. It is a cache: it may be removed when nothing runs.
        cache_bytes: how large the copies in it may grow together.
        writers: "one" admits a server without conditional writes; the caller answers for there being one driver.
    """

    endpoint: str | None = None
    region: str | None = None
    requests: int = 16
    retries: int = 6
    cache: Path | None = None
    cache_bytes: int = 64 << 30
    writers: Writers = "many"


DEFAULTS: Final = StorageOptions()
"""Options where none are given."""
