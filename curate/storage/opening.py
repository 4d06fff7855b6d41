"""From a path or URL to the files there."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from curate.storage.errors import StoreError
from curate.storage.files import Files
from curate.storage.local import LocalFiles
from curate.storage.options import StorageOptions

SCHEMES: Final = ("s3", "gs")
"""URL schemes of places that are not local."""


_FLATTENED: Final = tuple(f"{scheme}:" for scheme in SCHEMES)


def is_remote(location: Path | str) -> bool:
    """Return whether `location` is a URL of an object store."""
    return isinstance(location, str) and "://" in location


def normalised(location: Path | str) -> Path | str:
    """Return a path as a `Path`, and a URL without a slash at its end.

    Raises:
        StoreError: a URL of another scheme, without a bucket, with credentials or with a query.
    """
    if not is_remote(location):
        path = Path(location)
        if path.parts and path.parts[0] in _FLATTENED:
            raise StoreError(f"{path} is a URL that became a path: give it as a text, {path.parts[0]}//bucket/prefix")
        return path
    parts = urlsplit(str(location))
    if "@" in parts.netloc or parts.query or parts.fragment:  # never repeat what may be a secret
        raise StoreError(
            f"a {parts.scheme}:// URL holds more than bucket and prefix: credentials are taken from the environment "
            "or the files of the SDK, never from a URL, which ends up in recipes, journals and messages"
        )
    if parts.scheme not in SCHEMES or not parts.netloc:
        raise StoreError(f"{location}: give a path, s3://bucket/prefix or gs://bucket/prefix")
    return f"{parts.scheme}://{parts.netloc}/{parts.path.strip('/')}".rstrip("/")


def joined(location: Path | str, folder: str) -> Path | str:
    """Return the location of `folder` below `location`."""
    if isinstance(location, Path):
        return location.joinpath(*folder.split("/"))
    return f"{location}/{folder}"


def open_files(location: Path | str, options: StorageOptions) -> Files:
    """Return the files at `location`."""
    if isinstance(location, Path):
        return LocalFiles(location)
    from curate.storage.objects import open_objects

    return open_objects(location, options)
