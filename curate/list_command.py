"""`curate list`: write the listing that pins the files of a source."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from curate.inputs import find_files, place_of
from curate.listings import CHECKSUMS, make_listing, read_sums
from curate.progress import Progress
from curate.readers.reader import source_root
from curate.store_options import STORE_HELP, add_store_options, store_of

Commands = argparse._SubParsersAction  # argparse has no public name for it


def add_list(commands: Commands[argparse.ArgumentParser], add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command `list`."""
    command = add(commands, "list", list_source, "pin the files of a source: one line each with size and checksum")
    command.add_argument("root", metavar="SOURCE_ROOT", help=f"root of the source: {STORE_HELP}")
    add_store_options(command)
    command.add_argument("--pattern", default="**/*", help="which files, as the recipe has it (default: all)")
    for kind in CHECKSUMS:
        command.add_argument(
            f"--{kind}", type=Path, metavar="FILE", help=f"take {kind} from FILE, as {kind}sum writes it; read no data"
        )


def list_source(options: argparse.Namespace) -> int:
    """Write the listing to standard output and return the exit status."""
    given = {kind: path for kind in CHECKSUMS if (path := getattr(options, kind)) is not None}
    kind, sums = next(((kind, read_sums(path, kind)) for kind, path in given.items()), ("blake3", None))
    root = source_root(store_of(options, options.root))
    files = [(file.path, file.size) for file in find_files(root, options.pattern, "curate list")]
    progress = Progress("list", len(files), sum(size for _, size in files), words=("files", "files"))
    for listed in make_listing(place_of(root), files, sums, kind):
        sys.stdout.buffer.write(listed.line())
        progress.advance(1, listed.size)
    sys.stdout.buffer.flush()
    progress.finish()
    return 0
