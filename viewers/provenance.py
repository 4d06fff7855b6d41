"""What the run that made a result first told of itself, as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curate.store import Store
from viewers.markup import Child, Markup, element, join
from viewers.numbers import counted, grouped
from viewers.tables import Mark, table
from viewers.visible import shortened

LONG = 20_000
"""Code points of a recipe that are shown."""


@dataclass(frozen=True, slots=True)
class ProvenanceView:
    """The manifest's `provenance`, and the text of the recipe (None where it was made in Python)."""

    told: Mapping[str, Any]
    text: str | None

    @property
    def inputs(self) -> Mapping[str, Mapping[str, Any]]:
        """Source → number of files, their bytes, and the digest of their list."""
        sources: Mapping[str, Mapping[str, Any]] = self.told["inputs"]
        return sources


def load_provenance(store: Store, folder: str, manifest: Mapping[str, Any]) -> ProvenanceView | None:
    """Return what the result in `folder` tells of its run.

    Raises:
        StoreError: the text of the recipe is missing.
    """
    told = manifest.get("provenance")
    if told is None:
        return None
    recipe = told["recipe"]
    text = None if recipe is None else store.read_bytes(f"{folder}/{recipe['file']}").decode("utf-8", "replace")
    return ProvenanceView(told, text)


def made_with(view: ProvenanceView) -> list[tuple[str, Child]]:
    """Return names and values: the version that ran, and the recipe's file."""
    recipe = view.told["recipe"]
    told: list[tuple[str, Child]] = [("Made by", f"curate {view.told['curate']}")]
    if recipe is not None:
        told.append(("Recipe", join([f"{shortened(recipe['name'])}, ", element("code", recipe["digest"])])))
    return told


def inputs_table(view: ProvenanceView) -> Markup:
    """Return the table of input files by source."""
    rows: list[list[Child]] = [
        [shortened(source), grouped(one["files"]), grouped(one["bytes"]), element("code", one["digest"])]
        for source, one in view.inputs.items()
    ]
    columns = ("Source", "Files", "Bytes", "Digest of the list")
    return table("Input files by source", Mark.EXACT, columns, rows, frozenset({"Digest of the list"}))


def recipe_text(view: ProvenanceView) -> Markup | None:
    """Return the recipe's text behind a click, None where there is none; a long one is cut, and says so."""
    if view.text is None:
        return None
    lines = counted(view.text.count("\n") + (not view.text.endswith("\n")), "line")
    summary = element("summary", f"The recipe, {lines}")
    text = element("pre", element("code", shortened(view.text, LONG)), tabindex="0")  # it scrolls: by keyboard, too
    return element("details", summary, text, class_="recipe")
