"""Recipes: one Python function that says which data is made, and how.

Importing a recipe reads nothing, and calling it only builds a graph. Its arguments are what `--set` gives on the
command line; defaults and annotations (`str`, `int`, `float`, `bool`, `Path`) say what they are.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, get_type_hints, runtime_checkable

from curate.configuration import ConfigurationError
from curate.recipes.cells import Cells
from curate.recipes.datasheet import Datasheet
from curate.recipes.graph import Dataset
from curate.recipes.models import FittedModel
from curate.recipes.show import Product, show_outputs

_TRUTH: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Artifact(Protocol):
    """What a mixture compiles to: a plan."""

    @property
    def digest(self) -> str:
        """Digest of the plan."""
        ...

    def save(self, path: Path) -> None:
        """Write the plan's file."""
        ...


@runtime_checkable
class Compiles(Protocol):
    """What is compiled from token caches at the end of a run: a mixture, see the package `mixtures`."""

    @property
    def cells(self) -> Any:
        """The cells of training texts."""
        ...

    def compile(self, caches: Mapping[str, Any], validation: Mapping[str, Any]) -> Artifact:
        """Return the plan that draws from `caches`, which share no text with `validation`."""
        ...

    def files(self, plan: Any, caches: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Return name → content of what is stored beside the plan."""
        ...

    def fields(self) -> Mapping[str, Any]:
        """Return what was asked for, as JSON values: weights, phases, the cap on repeats."""
        ...

    def digest_batches(self, plan: Any, caches: Mapping[str, Any], start: int, stop: int) -> str:
        """Return the digest of the batches of steps `start` to `stop` - 1."""
        ...


@dataclass(frozen=True, slots=True)
class Outputs:
    """What a recipe gives: named datasets and cells, at most one mixture, and what people know of it."""

    products: Mapping[str, Product]
    mixture: Compiles | None
    batches: tuple[tuple[int, int], ...]
    datasheet: Datasheet

    def __init__(
        self,
        *outputs: Dataset | Cells | FittedModel | Compiles,
        batches: Sequence[tuple[int, int]] = (),
        datasheet: Datasheet | None = None,
        **named: Dataset | Cells | FittedModel,
    ) -> None:
        """Name outputs by keyword; a positional one goes by the name of its stage, a mixture's cells by "training".

        Args:
            outputs: datasets, cells or a mixture.
            batches: stretches of steps (start, stop) of the mixture whose batches are digested.
            datasheet: answers to the questions that the report prints, and facts for `croissant.json`.
            named: datasets and cells by name; `validation=` gives the cells that a mixture must share no text with.

        Raises:
            ConfigurationError: nothing is given, a name stands twice, or something is no output.
        """
        mixtures = [output for output in outputs if isinstance(output, Compiles)]
        plain = [(_name(output), output) for output in outputs if not isinstance(output, Compiles)]
        given = [*(("training", mixture.cells) for mixture in mixtures), *plain, *named.items()]
        if len(mixtures) > 1:
            raise ConfigurationError("Outputs() takes one mixture: write a recipe for each")
        if batches and not mixtures:
            raise ConfigurationError("Outputs(batches=…) are steps of a mixture, and there is none")
        if datasheet is not None and not isinstance(datasheet, Datasheet):
            raise ConfigurationError(f"Outputs(datasheet=…) takes a Datasheet, got {datasheet!r}")
        products: dict[str, Product] = {}
        for name, product in given:
            if not isinstance(product, (Dataset, Cells, FittedModel)):
                raise ConfigurationError(
                    f"Outputs({name}=…) takes datasets, cells, models or a mixture, got {product!r}"
                )
            if name in products:
                raise ConfigurationError(f"two outputs are called {name!r}: name them by keyword, as Outputs(train=…)")
            products[name] = product
        if not products:
            raise ConfigurationError("Outputs() is empty: give it at least one dataset")
        object.__setattr__(self, "products", products)
        object.__setattr__(self, "mixture", mixtures[0] if mixtures else None)
        object.__setattr__(self, "batches", tuple(batches))
        object.__setattr__(self, "datasheet", datasheet or Datasheet())

    def __str__(self) -> str:
        tree = show_outputs(self.products)
        return tree if self.mixture is None else f"{self.mixture}\n{tree}"


def _name(output: object) -> str:
    return str(getattr(output, "name", "?"))


EXPECTED: Final = (ValueError, TypeError, OSError, RuntimeError)
"""What our own calls raise in a recipe: their messages stand alone. Others are told with the name of their class."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function that returns `Outputs`, with the name and the settings that the command line needs."""

    function: Callable[..., Outputs]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.__name__

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The settings that the recipe takes."""
        return inspect.signature(self.function).parameters

    def __call__(self, *args: Any, **settings: Any) -> Outputs:
        """Build the graph.

        Raises:
            ConfigurationError: a setting is missing, unknown, or the function raises, or returns something else than
                `Outputs`.
        """
        try:
            inspect.signature(self.function).bind(*args, **settings)
        except TypeError as error:
            raise ConfigurationError(f"recipe {self.name}: {error}; its settings are {self.usage()}") from None
        try:
            outputs = self.function(*args, **settings)
        except Exception as error:
            line = _line(error, self.function.__code__.co_filename) or self.function.__code__.co_firstlineno
            kind = "" if isinstance(error, EXPECTED) else f"{type(error).__name__}: "
            raise ConfigurationError(f"recipe {self.name}, line {line}: {kind}{error}") from error
        if not isinstance(outputs, Outputs):
            raise ConfigurationError(f"recipe {self.name} returned {type(outputs).__name__}, not Outputs(…)")
        return outputs

    def usage(self) -> str:
        """Return the settings in words, as "crawl, threshold=0.8"."""
        return ", ".join(str(parameter) for parameter in self.parameters.values()) or "none"

    def settings(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Return settings that were given as text, converted as annotated.

        Raises:
            ConfigurationError: a setting that the recipe does not take, or a text that is no such value.
        """
        hints = get_type_hints(self.function)
        unknown = set(given) - set(self.parameters)
        if unknown:
            raise ConfigurationError(
                f"recipe {self.name} has no setting {', '.join(sorted(unknown))}; it has {self.usage()}"
            )
        return {name: _convert(name, text, hints.get(name, str)) for name, text in given.items()}


def recipe(function: Callable[..., Outputs]) -> Recipe:
    """Make a recipe of a function that returns `Outputs`."""
    return Recipe(function)


def parse_pairs(given: Sequence[str]) -> dict[str, str]:
    """Return name → value of settings given as "NAME=VALUE".

    Raises:
        ConfigurationError: one has no name or no equals sign.
    """
    pairs = [text.partition("=") for text in given]
    if wrong := [text for text, (name, equals, _) in zip(given, pairs, strict=True) if not equals or not name]:
        raise ConfigurationError(f"--set {wrong[0]}: give NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _line(error: BaseException, file: str) -> int | None:
    """Return the line of `file` in which `error` was raised, or which is none of Python's."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else getattr(error, "lineno", None)


def _convert(name: str, text: str, kind: Any) -> Any:
    try:
        if kind is bool:
            return _TRUTH[text.lower()]
        return kind(text) if kind in (int, float, Path) else text
    except (ValueError, KeyError):
        raise ConfigurationError(f"--set {name}={text}: that is no {kind.__name__}") from None


def load_recipe(target: str) -> tuple[Recipe, types.ModuleType]:
    """Import FILE[:NAME] and return its recipe, and the module.

    Raises:
        ConfigurationError: no such file, one that cannot be imported, no recipe in it, or several and no name.
    """
    file, _, name = target.partition(":")
    path = Path(file)
    if not path.is_file():
        raise ConfigurationError(f"{file} is not a file: give FILE[:NAME], as recipe.py:demo")
    spec = importlib.util.spec_from_file_location(f"curate_recipe_{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise ConfigurationError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        line = _line(error, str(path.resolve()))
        raise ConfigurationError(f"{file}, line {line}: {type(error).__name__}: {error}") from error
    found = {key: value for key, value in vars(module).items() if isinstance(value, Recipe)}
    if name and name not in found:
        raise ConfigurationError(f"{file} has no recipe {name!r}; it has {', '.join(found) or 'none'}")
    if not found:
        raise ConfigurationError(f"{file} has no recipe: write @recipe above the function that returns Outputs(…)")
    if not name and len(found) != 1:
        raise ConfigurationError(f"{file} has {len(found)} recipes ({', '.join(found)}): say which, as {file}:NAME")
    return found[name or next(iter(found))], module
