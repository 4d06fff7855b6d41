"""How a store that is not a local folder is reached. Never credentials: those are the SDK's own affair."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from curate.storage.errors import StoreError

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

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            StoreError: `endpoint` is no plain URL of a server, or `requests` or `retries` is too small.
        """
        parts = urlsplit(self.endpoint or "https://host")
        if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc or parts.query:
            raise StoreError("endpoint: give the URL of a server, http(s)://host:port, without credentials or a query")
        if self.requests < 1 or self.retries < 0:
            raise StoreError(f"requests={self.requests}, retries={self.retries}: give at least 1 and 0")


DEFAULTS: Final = StorageOptions()
"""Options where none are given."""
