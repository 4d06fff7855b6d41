"""The command line: it finds the command, parses, runs it and picks the exit status.

Only the command that is asked for is imported (`curate.commands.table`), so that `curate --help` answers at once.

Exit status: 0 fine, 1 a check failed, 2 the command or the recipe is wrong and nothing was done, 3 the run failed, 130
stopped by Ctrl-C (SIGINT), 143 stopped by SIGTERM.
"""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import textwrap
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Final

from curate.commands.table import GROUPS, all_commands
from curate.running.stopping import stoppable

OK, USAGE, RUN_FAILED = 0, 2, 3
WIDTH: Final = 100
"""Columns of the list of commands."""

EPILOG: Final = """\
A recipe is a Python function decorated with @recipe that returns Outputs(…). See what a run would do, run it,
look at what came out, check every byte of it, and write the page that shows it:

  curate plan   recipe.py --store STORE --set crawl=DIR
  curate run    recipe.py --store STORE --set crawl=DIR
  curate look   STORE
  curate verify STORE
  curate report STORE

Exit status: 0 fine, 1 a check failed, 2 the command or the recipe is wrong (nothing was done, unless the texts had to
tell: as what a mixture is short of), 3 the run failed (what was finished is kept, and the same command goes on from
there), 130 stopped by Ctrl-C, 143 by SIGTERM (the same).
"""


REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOSPC: ": free some in the place that is written, or in the folder for temporary files (TMPDIR names "
    "another). What was finished is kept: the same command goes on from there",
    errno.EROFS: ": give a place that can be written",
    errno.EACCES: ": give a place that you may read and write",
}
"""What to do about errors of the operating system."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a locale without the characters of a text ends no command
    options = parsed(given)
    command: Callable[[argparse.Namespace], int] = options.command
    with stoppable() as stop:
        try:
            return command(options)
        except BaseException as error:
            if stop.signal is None and not isinstance(error, KeyboardInterrupt):
                return _status_of(error)
            print("curate: stopped. What was finished is kept: the same command goes on from there", file=sys.stderr)
            return stop.status


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command that is `given`; a wrong one ends in the usage of that command."""
    options, unknown = parser(given).parse_known_args(given)
    if unknown:
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    return options


def _status_of(error: BaseException) -> int:
    """Say what went wrong and return the exit status; an error that nobody foresaw is raised again."""
    from curate.configuration import ConfigurationError
    from transforms.outcome import SchemaError
    from transforms.token_file import TokenizerError

    if isinstance(error, (ConfigurationError, SchemaError, TokenizerError)):
        print(f"curate: {error}", file=sys.stderr)
        return USAGE
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    if isinstance(error, (RuntimeError, OSError)):  # as all errors of stores and tasks are
        remedy = REMEDIES.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        print(f"curate: {type(error).__name__}: {error}{remedy}", file=sys.stderr)
        return RUN_FAILED
    raise error


def parser(wanted: Container[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; those named in `wanted` (None: all) know their arguments."""
    top = argparse.ArgumentParser(
        prog="curate",
        description="Make training data for language models: every document, choice and failure accounted for.",
        epilog="\n".join(_listing()) + "\n" + EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND", help="one of those below; curate COMMAND --help")
    for command in all_commands():
        about = command.about[0].upper() + command.about[1:] + "."
        added = commands.add_parser(command.name, description=about)
        added.set_defaults(refuse=added.error)
        if wanted is None or command.name in wanted:
            command.add_arguments(added)
    return top


def _listing() -> Iterator[str]:
    """Yield the lines of help that list the commands by group."""
    widest = max(len(command.name) for command in all_commands()) + 4
    for group, commands in GROUPS.items():
        yield f"{group}:"
        for command in commands:
            lead = f"  {command.name}".ljust(widest)
            yield from textwrap.wrap(command.about, WIDTH, initial_indent=lead, subsequent_indent=" " * widest)
        yield ""


if __name__ == "__main__":
    sys.exit(main())
