"""`curate list`: write the listing that pins the files of a source."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.inputs.listings import CHECKSUMS


def add_list(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `list`."""
    command.set_defaults(command=list_source)
    command.add_argument("root", metavar="SOURCE_ROOT", help=f"root of the source: {STORE_HELP}")
    command.add_argument("--pattern", default="**/*", help="which files, as the recipe has it (default: all)")
    sums = command.add_mutually_exclusive_group()
    for kind in CHECKSUMS:
        tool = {"blake3": "b3sum"}.get(kind, f"{kind}sum")
        sums.add_argument(
            f"--{kind}", type=Path, metavar="FILE", help=f"take {kind} from FILE, as {tool} writes it, and read no data"
        )
    add_store_options(command)


def list_source(options: argparse.Namespace) -> int:
    """Write the listing to standard output and return the exit status."""
    from curate.inputs.files import find_files
    from curate.inputs.pinning import make_listing, read_sums
    from curate.running.progress import Progress

    place = store_of(options, options.root)
    files = find_files(place if place.is_remote else place.root, options.pattern, "curate list")
    given = {kind: path for kind in CHECKSUMS if (path := getattr(options, kind)) is not None}
    kind, sums = next(((kind, read_sums(path, kind)) for kind, path in given.items()), ("blake3", None))
    progress = Progress("list", len(files), sum(file.size for file in files), words=("files", "files"))
    for listed in make_listing(files, sums, kind):
        sys.stdout.write(listed.line().decode())
        progress.advance(1, listed.size)
    sys.stdout.flush()
    progress.finish()
    return 0
