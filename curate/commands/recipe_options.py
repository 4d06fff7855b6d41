"""How commands are told of a recipe: its file, its settings, the store and a sample."""

from __future__ import annotations

import argparse
import types
from pathlib import Path
from typing import TYPE_CHECKING

from curate.commands.store_options import STORE_HELP, add_store_options

if TYPE_CHECKING:
    from curate.recipes.recipe import Outputs, Recipe


def add_recipe_options(command: argparse.ArgumentParser) -> None:
    """Add the arguments that name a recipe, its store, its settings and a share of the documents."""
    command.add_argument("recipe", metavar="FILE[:NAME]", help="Python file with the recipe; NAME where it has several")
    command.add_argument(
        "--store", required=True, metavar="DIR", help=f"store to write, made if it is not there: {STORE_HELP}"
    )
    add_store_options(command)
    command.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="a setting of the recipe; repeatable"
    )
    command.add_argument("--sample", metavar="F", help="run on this share of the documents, as 0.01, chosen by id")


def outputs_of(options: argparse.Namespace) -> tuple[Recipe, Outputs, list[types.ModuleType]]:
    """Return the recipe that was named, what it returns with its settings, and the module that it stands in."""
    from curate.recipes.recipe import load_recipe, parse_pairs

    loaded, module = load_recipe(options.recipe)
    return loaded, loaded(**loaded.settings(parse_pairs(options.set))), [module]


def recipe_file(options: argparse.Namespace) -> Path:
    """Return the file of the recipe that was named."""
    return Path(options.recipe.partition(":")[0])
