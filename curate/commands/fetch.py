"""`curate fetch`: fetch a pinned model into the user's data folder."""

from __future__ import annotations

import argparse
import sys


def add_fetch(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `fetch`."""
    command.set_defaults(command=fetch)
    command.add_argument("what", choices=["lid"], help="lid: the fastText language model lid.176.ftz (CC-BY-SA-3.0)")


def fetch(options: argparse.Namespace) -> int:
    """Fetch the model and print where it lies; return 3 when it cannot be had."""
    from curate.fetch import FetchError, fetch_lid
    from curate.running.progress import say

    say("language model: looked for in the user's data folder, else fetched by pip (792 kB)")
    try:
        print(fetch_lid())
    except FetchError as error:
        print(f"curate: {error}", file=sys.stderr)
        return 3
    return 0
