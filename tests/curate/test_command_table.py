"""The table of commands: each is found, told of in one line, and imported only when it is asked for."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from curate.command_line import main, parser
from curate.commands.table import GROUPS, all_commands

HEAVY = {"datatrove", "jax", "numba", "numpy", "pyarrow", "ray", "scipy", "tensorstore", "tokenizers"}
COMPILERS = HEAVY - {"numpy", "pyarrow", "scipy"}

LOADED = """
import json, sys
from curate.command_line import main
after = []
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit:
        pass
    after.append(sorted({name.partition(".")[0] for name in sys.modules} | set(sys.modules)))
print("\\n" + json.dumps(after))
"""


def modules_after(*calls):
    """Return the modules that a process has loaded after each of its calls of the command line."""
    done = subprocess.run([sys.executable, "-c", LOADED, json.dumps(calls)], capture_output=True, text=True, check=True)
    return [set(names) for names in json.loads(done.stdout.splitlines()[-1])]


def test_commands_have_one_line_of_help_and_names_of_their_own():
    names = [command.name for command in all_commands()]
    assert len(names) == len(set(names))
    for command in all_commands():
        assert command.about and "\n" not in command.about and not command.about.endswith("."), command.name


def test_every_command_has_arguments_and_a_function(capsys):
    made = parser()
    (listed,) = (action for action in made._actions if isinstance(action, argparse._SubParsersAction))
    assert list(listed.choices) == [command.name for command in all_commands()]
    for name, command in listed.choices.items():
        assert callable(command.get_default("command")), name


def test_help_imports_no_library_and_that_of_all_commands_no_command():
    names = [command.name for command in all_commands()]
    after_help, *after_commands = modules_after(["--help"], *([name, "--help"] for name in names))
    assert not after_help & HEAVY
    assert not {name for name in after_help if name.startswith("curate.commands.")} - {"curate.commands.table"}
    for name, modules in zip(names, after_commands, strict=True):
        assert not modules & HEAVY, f"curate {name} --help loads {sorted(modules & HEAVY)}"


def test_status_of_a_store_compiles_nothing_and_starts_no_ray(tmp_path):
    (tmp_path / "store").mkdir()
    (modules,) = modules_after(["status", str(tmp_path / "store")])
    assert "curate.upkeep.status" in modules and not modules & COMPILERS


def test_help_lists_every_command_by_group(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    for group, commands in GROUPS.items():
        assert f"{group}:" in shown
        for command in commands:
            assert f"{command.name} {command.about}" in shown
