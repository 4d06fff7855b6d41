"""Models that transforms use: files, or what a stage of the same recipe makes before they are applied.

A transform has a field for its model that takes either. Where a recipe gives what a stage will make, the engine puts
the file in its place before `apply`; until then the transform may look at its other fields only (`output_schema` too).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Unfitted(Protocol):
    """A model that a stage of the recipe makes."""

    @property
    def name(self) -> str:
        """The name of the stage."""
        ...

    def description(self) -> dict[str, Any]:
        """Return what stands for the model in the configuration of who uses it."""
        ...


Model = Path | os.PathLike[str] | Unfitted
"""What the field for a model holds: a path (its digest is in keys), or what a stage makes."""
