"""Writes `docs/cli.md`, the reference of the command line, from the parser itself.

    python -m docs.cli_reference

A test fails while the page says something else than the parser. Nothing in it depends on the version of Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from curate.command_line import parser
from curate.commands.store_options import add_store_options
from curate.commands.table import GROUPS, Command

PAGE: Final = Path(__file__).parent / "cli.md"
HEAD: Final = """\
# The command line

Every command with its arguments, written from the parser by `python -m docs.cli_reference`; `curate COMMAND --help`
says the same. Exit status of all: 0 fine, 1 a check failed, 2 the command or the recipe is wrong and nothing was done,
3 the run failed (what was finished is kept, and the same command goes on from there), 130 stopped by Ctrl-C (SIGINT),
143 by SIGTERM.
"""
STORES: Final = "Options of stores"


def reference() -> str:
    """Return the page."""
    (commands,) = (action for action in parser()._actions if isinstance(action, argparse._SubParsersAction))
    of_stores = argparse.ArgumentParser(add_help=False)
    add_store_options(of_stores)
    shared = {option for action in of_stores._actions for option in action.option_strings}
    lines = [HEAD]
    for group, entries in GROUPS.items():
        names = ", ".join(f"[`{entry.name}`](#curate-{entry.name})" for entry in entries)
        lines.append(f"- {group}: {names}")
    lines += ["", f"## {STORES}", "", "Every command that is given a store takes them; see [storage](storage.md).", ""]
    lines += _table(of_stores._actions)
    for group, entries in GROUPS.items():
        lines += ["", f"## {group[0].upper()}{group[1:]}"]
        for entry in entries:
            lines += _section(entry, commands.choices[entry.name], shared)
    return "\n".join(lines) + "\n"


def _section(entry: Command, command: argparse.ArgumentParser, shared: set[str]) -> Iterator[str]:
    """Yield the section of one command."""
    actions = [action for action in command._actions if not isinstance(action, argparse._HelpAction)]
    own = [action for action in actions if not shared.issuperset(action.option_strings) or not action.option_strings]
    yield from ("", f"### curate {entry.name}", "", f"{entry.about[0].upper()}{entry.about[1:]}.", "")
    yield from ("    " + " ".join([f"curate {entry.name}", *_usage(own)]), "")
    yield from _table(own)
    if len(own) < len(actions):
        yield from ("", f"And the [options of stores](#{STORES.lower().replace(' ', '-')}).")
    if command.epilog:
        yield from ("", *(f"    {line}".rstrip() for line in command.epilog.strip("\n").splitlines()))


def _usage(actions: list[argparse.Action]) -> Iterator[str]:
    """Yield what must be given, in order; "[options]" stands for the rest."""
    if any(action.option_strings and not action.required for action in actions):
        yield "[options]"
    for action in actions:
        if action.option_strings and action.required:
            yield _named(action).split(", ")[-1]
        elif not action.option_strings:
            more = {"+": " …", "*": " …"}.get(str(action.nargs), "")
            yield f"[{_value(action)}{more}]" if action.nargs in ("?", "*") else _value(action) + more


def _table(actions: list[argparse.Action]) -> list[str]:
    """Return the rows of a table of arguments."""
    if not actions:
        return ["It takes no arguments."]
    rows = [f"| `{_named(action)}` | {_said(action)} |" for action in actions]
    return ["| argument | what it says |", "|---|---|", *rows]


def _named(action: argparse.Action) -> str:
    if not action.option_strings:
        return _value(action)
    names = ", ".join(action.option_strings)
    return names if action.nargs == 0 else f"{names} {_value(action)}"


def _value(action: argparse.Action) -> str:
    if action.metavar is not None:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper().replace("_", "-")


def _said(action: argparse.Action) -> str:
    said = (action.help or "") % {**vars(action), "prog": "curate"}
    if action.choices is not None and action.metavar is not None:
        said += f" ({', '.join(map(str, action.choices))})"
    return " ".join(said.replace("|", "\\|").split())


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
