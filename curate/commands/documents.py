"""`curate documents`: the documents of a result as plain files, for tools that want a folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from curate.commands.results import last_result
from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError

FORMS = ("parquet", "jsonl", "arrow")


def add_documents(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `documents`."""
    command.set_defaults(command=write)
    command.add_argument("store", metavar="DIR", help=f"store with a result: {STORE_HELP}")
    command.add_argument("--to", type=Path, required=True, metavar="DIR", help="empty folder to write")
    command.add_argument(
        "--format", choices=FORMS, default="parquet", help="jsonl is packed as .zst (default: parquet)"
    )
    command.add_argument("--output", metavar="NAME", help="which output of the recipe (default: the only one)")
    command.add_argument("--columns", metavar="A,B", help="columns to write (default: all)")
    command.add_argument("--recipe", metavar="FOLDER", help="result in the store (default: the one that ran last)")
    add_store_options(command)


def write(options: argparse.Namespace) -> int:
    """Write the files and print their paths; return 0."""
    from curate.bridges.files import write_documents
    from curate.run import open_result

    store = store_of(options)
    outputs = open_result(store, options.recipe or last_result(store)).outputs
    name = options.output or (next(iter(outputs)) if len(outputs) == 1 else None)
    if name is None or name not in outputs:
        raise ConfigurationError(f"--output: one of {', '.join(outputs) or 'none'}" + (f", not {name}" if name else ""))
    columns = None if options.columns is None else [column.strip() for column in options.columns.split(",")]
    for path in write_documents(outputs[name], options.to, options.format, columns):
        print(path)
    return 0
