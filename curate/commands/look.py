"""`curate look`: a few records of whatever a path holds, raw beside what becomes of them."""

from __future__ import annotations

import argparse

from curate.commands.store_options import add_store_options, store_of


def add_look(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `look`."""
    command.set_defaults(command=show_records)
    command.add_argument("path", metavar="PATH", help=".warc(.gz), .jsonl(.gz, .zst), .parquet, text, or store")
    command.add_argument("--count", type=int, default=3, metavar="N", help="records to show (default: 3)")
    add_store_options(command)


def show_records(options: argparse.Namespace) -> int:
    """Print the records; return 0."""
    from curate.commands.records import look
    from curate.running.compiling import compiling_told

    with compiling_told():
        for line in look(store_of(options, options.path), options.count):
            print(line)
    return 0
