"""`curate verify`: check every byte and every count of a store."""

from __future__ import annotations

import argparse

from curate.commands.store_options import STORE_HELP, add_store_options, store_of


def add_verify(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `verify`."""
    command.set_defaults(command=show_problems)
    command.add_argument("store", metavar="DIR", help=f"store to check: {STORE_HELP}")
    command.add_argument(
        "--deep", action="store_true",
        help="read every chunk of token caches, lead a sample of documents back and encode them again",
    )  # fmt: skip
    add_store_options(command)


def show_problems(options: argparse.Namespace) -> int:
    """Print what is wrong with the store; return 1 when something is."""
    from curate.running.progress import Progress
    from curate.upkeep.deep import verify_deeply
    from curate.upkeep.verify import verify

    progress = Progress("verify", None, 0, words=("checks", "checks"))
    found = (verify_deeply if options.deep else verify)(store_of(options), lambda size: progress.advance(1, size))
    progress.finish()
    for note in found.notes:
        print(f"note: {note}")
    for problem in found.problems:
        print(f"PROBLEM: {problem}")
    print(f"{found.files:,} files, {found.bytes:,} bytes checked: {len(found.problems)} problems")
    return 0 if found.ok else 1
