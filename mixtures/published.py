"""A mixture as it can be published: enough to compile its plan again, without the recipe, the caches or any text.

`mixture.json` is canonical JSON: phases with their exact weights by component, how sequences are cut, limits and seed
as the recipe has them, and names, digests and sizes of the caches. `rebuild` compiles it by the same code as the
recipe's run did; the plan must come out with the digest that was published. Packed plans need their packings beside it,
for where documents begin stands in the caches alone.

What cannot be checked without the caches is that no text is both trained on and held out: the run that made the plan
checked that. Cost: bytes grow with components × phases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError
from curate.formats import Format, FormatError
from curate.store import StoreError, check_self_digest, json_line, self_digested
from mixtures.cache import Cache
from mixtures.errors import PlanError
from mixtures.fill_in_the_middle import FillInTheMiddle
from mixtures.mixture import Mixture, Phase
from mixtures.packing import Packing
from mixtures.plan import Plan
from mixtures.quotas import AtMost
from mixtures.sequences import Packed, Sequences, sequences_from_json
from mixtures.weights import whole

NAME: Final = "mixture.json"
FORMAT: Final = Format(1, "read it with the version that wrote it, or publish the mixture again", prefix="mixture ")


@dataclass(frozen=True, slots=True)
class DescribedCache:
    """A cache of which the description is there and the tokens are not; see `mixtures.Cache`."""

    name: str
    digest: str
    tokens: int
    documents: int
    tokenizer: str
    vocabulary: int
    eos: int | None

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Refuse: there are no tokens."""
        raise self._absent()

    def read_many(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[Any]]:
        """Refuse: there are no tokens."""
        raise self._absent()

    def read_untrained(self, ranges: list[tuple[int, int]]) -> list[npt.NDArray[np.uint8]] | None:
        """Refuse: there are no tokens."""
        raise self._absent()

    def borders(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Refuse: where documents begin is not known."""
        raise self._absent()

    def text_digests(self) -> npt.NDArray[np.uint8]:
        """Return none: whether texts are held out was checked where they are."""
        return np.empty((0, 16), np.uint8)

    def _absent(self) -> PlanError:
        return PlanError(f"the tokens of {self.name!r} are not published, only their digest {self.digest}")


@dataclass(frozen=True, slots=True)
class _StoredPacked(Packed):
    """Packed sequences whose packings are given."""

    packings: Mapping[str, Packing] = field(default_factory=dict, repr=False, compare=False)

    def packing_of(self, cache: Cache) -> Packing:
        """Return the packing of the cache's component.

        Raises:
            PlanError: it is not published.
        """
        if cache.name not in self.packings:
            raise PlanError(f"the packing of {cache.name!r} is missing: publish the folder packings, too")
        return self.packings[cache.name]


def mixture_json(
    mixture: Mixture, plan: Plan, caches: Mapping[str, Cache], validation: Mapping[str, Cache]
) -> dict[str, Any]:
    """Return what is published of `mixture`, which compiled to `plan` from these caches.

    Raises:
        PlanError: it does not compile to `plan`.
    """
    made = mixture.compile(caches, validation)
    if made.digest != plan.digest:
        raise PlanError(f"the recipe's mixture compiles to another plan, digest: {made.digest} ≠ {plan.digest}")
    sizes = {component.name: component.tokens for component in plan.components}
    repeats = mixture.repeats
    return self_digested(
        {
            "format": FORMAT.stamp,
            "plan": plan.digest,
            "seed": mixture.seed,
            "batch": mixture.batch,
            "rare": mixture.rare,
            "sequences": mixture.sequences.to_json(),
            "repeats": None if repeats is None else {"epochs": str(repeats.epochs), "then": repeats.then},
            "views": {name: view.to_json() for name, view in sorted(mixture.views.items())},
            "phases": [_phase(phase, sizes) for phase in mixture.phases],
            "components": [_described(name, cache) for name, cache in sorted(caches.items())],
            "validation": [_described(name, cache) for name, cache in sorted(validation.items())],
        }
    )


def rebuild(folder: Path) -> Plan:
    """Return the plan that `mixture.json` in `folder` compiles to, from it and the packings beside it alone.

    Raises:
        PlanError: it is damaged, or compiles to another plan than it says.
    """
    path = folder / NAME
    try:
        value = FORMAT.lift(check_self_digest(json.loads(path.read_bytes()), str(path)), str(path))
        caches, validation = (
            {item["name"]: DescribedCache(**item) for item in value[kind]} for kind in ("components", "validation")
        )
        mixture = _mixture(value, folder)
    except (OSError, ValueError, KeyError, TypeError, StoreError, FormatError) as error:
        raise PlanError(f"{path} describes no mixture: {error}") from error
    plan = mixture.compile(caches, validation)
    if plan.digest != value["plan"]:
        raise PlanError(f"{path} compiles to another plan than was published, digest: {plan.digest} ≠ {value['plan']}")
    return plan


def write_mixture(path: Path, value: Mapping[str, Any]) -> None:
    """Write what `mixture_json` returned to `path`."""
    path.write_bytes(json_line(dict(value)))


def _phase(phase: Phase, sizes: Mapping[str, int]) -> dict[str, Any]:
    weights = phase.weights_of(sizes)
    return {
        "name": phase.name,
        "tokens": whole(phase.tokens, "tokens"),
        "weights": {name: str(weight) for name, weight in sorted(weights.items())},
        "batch": phase.batch,
        "length": phase.length,
    }


def _described(name: str, cache: Cache) -> dict[str, Any]:
    fields = ("digest", "tokens", "documents", "tokenizer", "vocabulary", "eos")
    return {"name": name, **{field: getattr(cache, field) for field in fields}}


def _mixture(value: Mapping[str, Any], folder: Path) -> Mixture:
    phases = [Phase(**phase) for phase in value["phases"]]
    repeats = value["repeats"]
    return Mixture(
        None,
        *phases,
        sequences=_sequences(value, folder),
        repeats=None if repeats is None else AtMost(**repeats),
        rare=value["rare"],
        batch=value["batch"],
        seed=value["seed"],
        views={name: FillInTheMiddle.from_json(view) for name, view in value["views"].items()},
    )


def _sequences(value: Mapping[str, Any], folder: Path) -> Sequences:
    sequences = sequences_from_json(value["sequences"])
    if not isinstance(sequences, Packed):
        return sequences
    plan = Plan.load(folder / "plan.json", value["plan"])
    packings = {}
    for component in plan.components:
        packing = Packing.from_bytes((folder / "packings" / component.packing).read_bytes())
        if packing.digest != component.packing:
            raise ConfigurationError(f"the packing of {component.name!r} is another than the plan's")
        packings[component.name] = packing
    return _StoredPacked(sequences.length, packings)
