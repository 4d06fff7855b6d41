"""Objects behind S3's or Google's interface."""

from __future__ import annotations

from curate.storage.errors import StoreError
from curate.storage.files import Files
from curate.storage.options import StorageOptions


def open_objects(location: str, options: StorageOptions) -> Files:
    """Return the files at `location`."""
    raise StoreError(f"{location}: not reachable")
