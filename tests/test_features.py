"""Each feature is a call, a command and a section: the table of docs/features.md, checked."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import FunctionType

import curate
from curate.commands.table import all_commands

PAGE = Path(__file__).parents[1] / "docs" / "features.md"


def rows():
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and "`" in cells[1]:
            yield cells[0], re.findall(r"`([\w.]+)`", cells[1]), re.findall(r"`([\w-]+)`", cells[2]), cells[3]


def found(call):
    """Return what a dotted name stands for: a module as far as there is one, then attributes."""
    parts = call.split(".")
    for end in range(len(parts) - 1, 0, -1):
        try:
            value = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for name in parts[end:]:
            value = getattr(value, name)
        return value
    raise AssertionError(f"{call} is not there")


def test_each_feature_is_a_call_a_command_and_a_section():
    commands = {command.name for command in all_commands()}
    for feature, calls, named, section in rows():
        assert calls and named and re.fullmatch(r"\[[^\]]+\]\([^)]+\.md[^)]*\)", section), feature
        assert set(named) <= commands, feature
        for call in calls:
            assert callable(found(call)), f"{feature}: {call}"


def test_no_command_and_no_function_is_left_out():
    calls = {call for _, calls, _, _ in rows() for call in calls}
    named = {name for _, _, commands, _ in rows() for name in commands}
    missing = [command.name for command in all_commands() if command.name not in named]
    assert not missing, f"docs/features.md lacks a row for the commands {missing}"
    functions = [name for name in curate.__all__ if isinstance(getattr(curate, name), FunctionType)]
    left = [name for name in functions if f"curate.{name}" not in calls]
    assert not left, f"docs/features.md lacks a row for the calls {left}"
