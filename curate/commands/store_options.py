"""How commands are told of a store: a path or URL, and what a remote one needs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from curate.configuration import ConfigurationError
from curate.storage.options import DEFAULTS, StorageOptions
from curate.store import Store, StoreError

STORE_HELP: Final = "folder, s3://bucket/prefix or gs://bucket/prefix"


def add_store_options(command: argparse.ArgumentParser) -> None:
    """Add the options of remote stores to a command; the store itself is an argument of the command's own."""
    remote = command.add_argument_group("stores that are no local folder (docs/storage.md)")
    remote.add_argument("--endpoint", metavar="URL", help="server, where it is not the cloud's own")
    remote.add_argument("--region", metavar="R", help="region of an S3 bucket")
    remote.add_argument(
        "--requests",
        type=int,
        default=DEFAULTS.requests,
        metavar="N",
        help=f"requests in flight per process at most (default: {DEFAULTS.requests})",
    )
    remote.add_argument("--node-cache", type=Path, metavar="DIR", help="folder on each node for copies of files")
    remote.add_argument(
        "--exclusive",
        action="store_const",
        const="one",
        default="many",
        help="this is the only driver that writes: admits a server that ignores conditional writes",
    )


def store_of(options: argparse.Namespace, place: str | Path | None = None) -> Store:
    """Return the store that a command was given, as `options.store` or as `place`.

    Raises:
        ConfigurationError: a URL of another kind.
    """
    try:
        return Store(str(place if place is not None else options.store), None, storage_options(options)).resolved()
    except StoreError as error:
        raise ConfigurationError(str(error)) from error


def storage_options(options: argparse.Namespace) -> StorageOptions:
    """Return what `add_store_options` parsed."""
    return StorageOptions(
        endpoint=options.endpoint,
        region=options.region,
        requests=options.requests,
        cache=None if options.node_cache is None else options.node_cache.resolve(),
        writers=options.exclusive,
    )
