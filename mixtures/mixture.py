"""Mixtures as a user writes them, and their compilation to a plan.

    Mixture(cells, Phase("main", tokens=8e6, weights={"web": 3, "code": 1}),
                   Phase("cooldown", tokens=2e6, weights={"web": 0, "code": 1}),
            sequences=Chunks(512), repeats=AtMost(4, then="redistribute"), rare="refuse", batch=64, seed=7)

Weights are relative: 3 to 1 is 75 % to 25 % of a phase's sequences. A phase is rounded up to whole batches, so that no
batch mixes two phases. Every mistake is an error when compiling, before anything runs.

Invariant: the plan is a pure function of the mixture and of names, digests and sizes of the caches; the order in which
components are given does not matter. Cost: that of the counts (`mixtures.quotas`), and one look at the text digests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, ClassVar

from curate.configuration import ConfigurationError, describe
from mixtures.batch_digest import batch_digest
from mixtures.cache import Cache
from mixtures.cache_checks import check_caches, check_validation
from mixtures.continuation import joined, require_past
from mixtures.differences import Difference, differences
from mixtures.fill_in_the_middle import FillInTheMiddle
from mixtures.named import check_named
from mixtures.packing import Packing
from mixtures.packings import packings_of
from mixtures.plan import Plan
from mixtures.plan_fields import Component, Segment, Validation
from mixtures.quotas import RARE, AtMost, Rare, Request, draw_counts
from mixtures.sequences import Chunks, Sequences
from mixtures.weightings import Blend, Weighting, Weights, listed, mapped, shown, with_minimum
from mixtures.weights import Number, exact, integer_ratio, whole

NOTHING: Mapping[str, Cache] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of training with fixed weights.

    `tokens` is its length, padding included. `weights` are relative, by component; `others` is the weight of each
    component that they do not name: without it, not naming one is an error, `others=0` leaves them out. Or they follow
    from sizes, a table or other weights (`ByColumn`, `ByTokens`, `UniMax`, `FromTable`, `Blend`, `Patched`). `minimum`
    is a least share of the phase by component, "1/20" a twentieth, for which the others give way.

    `batch` and `length` are those of an update of the optimizer in this phase: a batch-size schedule and a length
    curriculum (`mixtures.updates`). `batch` counts sequences of the mixture's length, a multiple of its batch; `length`
    divides the mixture's. Epochs count in sequences of the mixture's length.
    """

    name: str
    tokens: Number
    weights: Weights
    others: Number | None = None
    minimum: Mapping[str, Number] = field(default_factory=dict)
    batch: int | None = None
    length: int | None = None

    def __post_init__(self) -> None:
        """Check what can be checked without caches.

        Raises:
            ConfigurationError: the length or a weight is no proper number, or the phase has no name.
        """
        if not self.name:
            raise ConfigurationError("a phase needs a name")
        whole(self.tokens, f"phase {self.name!r}: tokens")
        for name, share in self.minimum.items():
            exact(share, f"phase {self.name!r}: the minimum of {name!r}")
        if isinstance(self.weights, Weighting):
            if self.others is not None:
                kind = type(self.weights).__name__
                raise ConfigurationError(f"phase {self.name!r}: {kind} weights all components: leave others= out")
            return
        for name, weight in self.weights.items():
            exact(weight, f"phase {self.name!r}: the weight of {name!r}")
        if self.others is not None:
            exact(self.others, f"phase {self.name!r}: others")

    def weights_of(self, tokens: Mapping[str, int]) -> dict[str, Fraction]:
        """Return the exact weight of each component of `tokens`, component → size.

        Raises:
            ConfigurationError: a component is unknown or has no weight, or no weight is positive.
        """
        if isinstance(self.weights, Weighting):
            found = self.weights.weights_of(tokens, self.name, whole(self.tokens, "tokens"))
        else:
            given = {name: self.weights.get(name, self.others) for name in tokens}
            found = mapped(given, self.weights, tokens, f"phase {self.name!r}")
        return with_minimum(found, self.minimum, self.name) if self.minimum else found


@dataclass(frozen=True, slots=True, init=False)
class Mixture:
    """Components, and the phases that draw from them.

    `cells` is what the components are made from, as the engine knows it (the result of `tokenize`); `repeats` limits
    how often a sequence is seen, None not at all; `rare` says what happens to a positive weight too small to be drawn.
    """

    version: ClassVar[int] = 1

    cells: Any
    phases: tuple[Phase, ...]
    sequences: Sequences
    repeats: AtMost | None
    rare: Rare
    batch: int
    seed: int
    views: Mapping[str, FillInTheMiddle]

    def __init__(
        self,
        cells: Any,
        *phases: Phase,
        sequences: Sequences = Chunks(512),  # noqa: B008 - frozen
        repeats: AtMost | None = AtMost(4),  # noqa: B008 - frozen
        rare: Rare = "refuse",
        batch: int = 64,
        seed: int = 7,
        views: Mapping[str, FillInTheMiddle] = MappingProxyType({}),
    ) -> None:
        """Describe a mixture.

        Args:
            cells: what the components are made from.
            phases: one after the other, with different names.
            sequences: how token streams are cut: `Chunks`, or documents kept whole and `Packed`.
            repeats: the most that each component is repeated over all phases, or None.
            rare: "refuse" or "round up" (to one sequence) a positive weight that would never be drawn in its phase, or
                "merge:tail": all such together get their share, the greatest weights first.
            batch: sequences in a batch.
            seed: any integer; decides the order of sequences within components.
            views: component → how its documents are rearranged when they are read.

        Raises:
            ConfigurationError: an argument is not what it must be, or names a component that `cells` cannot have.
        """
        names = [phase.name for phase in phases]
        if not phases or len(set(names)) < len(names):
            raise ConfigurationError(f"Mixture(cells, Phase(…), …) needs phases with different names, got {names}")
        if rare not in RARE:
            raise ConfigurationError(f'Mixture(rare) is "refuse", "round up" or "merge:tail", got {rare!r}')
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigurationError(f"Mixture(seed) is an integer, got {seed!r}")
        check_named(cells, [(phase.name, phase.weights, phase.minimum) for phase in phases], list(views))
        values = {"cells": cells, "phases": phases, "sequences": sequences, "repeats": repeats, "rare": rare}
        values |= {"batch": whole(batch, "Mixture(batch)"), "seed": seed, "views": dict(views)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        settings = f"{self.sequences}, {self.batch} in a batch, {self.repeats}, rare={self.rare!r}, seed {self.seed}"
        phases = (
            f"  {phase.name}: {whole(phase.tokens, 'tokens'):,} tokens of {_shown(phase)}" for phase in self.phases
        )
        return "\n".join([f"mixture of {settings}", *phases])

    def compile(
        self, caches: Mapping[str, Cache], validation: Mapping[str, Cache] = NOTHING, past: Plan | None = None
    ) -> Plan:
        """Return the plan that draws from `caches`, after all of `past` where one is given.

        Args:
            caches: component → its tokens.
            validation: caches of held-out texts; none may be in `caches`.
            past: the plan of what was drawn already; see `Plan.continue_from`.

        Raises:
            ConfigurationError: the mixture cannot be realised from these caches.
            PlanError: `past` does not go with this mixture or these caches; names the first field that differs.
        """
        check_caches(caches, validation)
        check_validation(caches, validation)
        packings = {name: self.sequences.packing_of(cache) for name, cache in sorted(caches.items())}
        components = {name: self._component(name, caches[name], packing) for name, packing in packings.items()}
        first = next(iter(caches.values()))
        settings: dict[str, Any] = {
            "seed": self.seed,
            "batch": self.batch,
            "sequences": self.sequences,
            "views": self._views(caches),
            "tokenizer": first.tokenizer,
            "vocabulary": first.vocabulary,
            "padding": 0 if first.eos is None else first.eos,
            "validation": tuple(
                Validation(name, held.digest, held.tokens) for name, held in sorted(validation.items())
            ),
        }
        if past is not None:
            require_past(past, settings, components)
        segments = self._segments(components, past)
        made = {name: packing for name, packing in packings.items() if packing is not None}
        plan = Plan(components=tuple(components.values()), segments=segments, packings=made, **settings)
        return self._stopped(plan if past is None else joined(past, plan), 0 if past is None else past.steps)

    def patch(self, phase: str, weights: Weights, others: Number | None = None) -> Mixture:
        """Return this mixture with other weights in a phase.

        Raises:
            ConfigurationError: there is no such phase.
        """
        if phase not in (names := [old.name for old in self.phases]):
            raise ConfigurationError(f"there is no phase {phase!r} to patch, only {listed(names)}")
        new = [replace(old, weights=weights, others=others) if old.name == phase else old for old in self.phases]
        return self._with(new)

    def interpolate(self, other: Mixture, share: Number) -> Mixture:
        """Return the mixture between this one and `other`: in each phase 1 - `share` of ours and `share` of theirs.

        Raises:
            ConfigurationError: their phases have other names or lengths.
        """
        ours, theirs = ([(phase.name, whole(phase.tokens, "tokens")) for phase in m.phases] for m in (self, other))
        if ours != theirs:
            raise ConfigurationError(f"mixtures are interpolated phase by phase, but {ours} ≠ {theirs}")
        for phase in (*self.phases, *other.phases):
            if phase.others:
                raise ConfigurationError(f"phase {phase.name!r} has others={phase.others!r}: name all that is blended")
        pairs = zip(self.phases, other.phases, strict=True)
        return self._with([replace(a, weights=Blend(a.weights, b.weights, share), others=None) for a, b in pairs])

    def over(self, cells: Any) -> Mixture:
        """Return this mixture of other `cells`."""
        names = ("sequences", "repeats", "rare", "batch", "seed", "views")
        return Mixture(cells, *self.phases, **{name: getattr(self, name) for name in names})

    def _with(self, phases: Sequence[Phase]) -> Mixture:
        names = ("sequences", "repeats", "rare", "batch", "seed", "views")
        return Mixture(self.cells, *phases, **{name: getattr(self, name) for name in names})

    def diff(self, other: Mixture) -> tuple[Difference, ...]:
        """Return the fields in which this mixture and `other` differ, without their cells."""
        return tuple(differences(self.fields(), other.fields()))

    def fields(self) -> dict[str, Any]:
        """Return what was asked for, without the cells, as JSON values."""
        names = ("sequences", "repeats", "rare", "batch", "seed", "views")
        fields = {name: describe(getattr(self, name)) for name in names}
        return {**fields, "phases": [{**_plain(describe(phase)), "name": phase.name} for phase in self.phases]}

    def files(self, plan: Plan, caches: Mapping[str, Cache]) -> Mapping[str, bytes]:
        """Return name → content of what is stored beside a plan of this mixture: the packings of its components."""
        return {f"packings/{packing.digest}": packing.to_bytes() for packing in packings_of(plan, caches).values()}

    def digest_batches(self, plan: Plan, caches: Mapping[str, Cache], start: int, stop: int) -> str:
        """Return the digest of the batches of steps `start` to `stop` - 1 of a plan that this mixture compiled to."""
        return batch_digest(plan, caches, start, stop)

    def _views(self, caches: Mapping[str, Cache]) -> Mapping[str, FillInTheMiddle]:
        for name, view in self.views.items():
            if name not in caches:
                raise ConfigurationError(f"views rearrange {name!r}, but the components are {listed(list(caches))}")
            if max(view.sentinels) >= (vocabulary := caches[name].vocabulary):
                raise ConfigurationError(
                    f"the view of {name!r} has the sentinels {view.sentinels}, but ids of the tokenizer end at "
                    f"{vocabulary - 1}: take a tokenizer that has them"
                )
        return {name: self.views[name] for name in sorted(self.views)}

    def _component(self, name: str, cache: Cache, packing: Packing | None) -> Component:
        if isinstance(self.sequences, Chunks):
            return Component(name, cache.digest, cache.tokens, self.sequences.count(cache.tokens))
        if packing is None:
            raise TypeError(f"{self.sequences} needs a packing of {name!r}")
        return Component(name, cache.digest, cache.tokens, len(packing), packing.digest)

    def _segments(self, components: Mapping[str, Component], past: Plan | None) -> tuple[Segment, ...]:
        sizes = {name: component.tokens for name, component in components.items()}
        requests = [self._request(phase, sizes) for phase in self.phases]
        drawn = {} if past is None else past.draws()
        caps = {}
        if self.repeats is not None and self.repeats.then == "redistribute":
            for name, component in components.items():
                caps[name] = max(0, self.repeats.draws(component.sequences) - drawn.get(name, 0))
        counts = draw_counts(requests, caps, self.rare)
        for phase, request, count in zip(self.phases, requests, counts, strict=True):
            _require_minimum(phase, request.length, count)
        return tuple(
            Segment(
                phase=phase.name,
                tokens=whole(phase.tokens, "tokens"),
                weights=_integers(request.weights),
                counts=count,
                quota_length=request.length,
                drawn_length=request.length,
                batch=0 if phase.batch in (None, self.batch) else int(phase.batch),
                length=0 if phase.length in (None, self.sequences.length) else int(phase.length),
            )
            for phase, request, count in zip(self.phases, requests, counts, strict=True)
        )

    def _request(self, phase: Phase, sizes: Mapping[str, int]) -> Request:
        sequences = -(-whole(phase.tokens, "tokens") // self.sequences.length)
        batch = self._update(phase)
        return Request(phase.name, -(-sequences // batch) * batch, phase.weights_of(sizes))

    def _update(self, phase: Phase) -> int:
        """Return the sequences of an update in `phase`."""
        batch, length = phase.batch or self.batch, phase.length or self.sequences.length
        if batch % self.batch:
            raise ConfigurationError(
                f"phase {phase.name!r}: batch={batch} is no multiple of Mixture(batch={self.batch}), the smallest"
            )
        if self.sequences.length % length or length < 2:
            raise ConfigurationError(
                f"phase {phase.name!r}: length={length} does not divide {self.sequences.length}, the longest"
            )
        if length < self.sequences.length and not isinstance(self.sequences, Chunks):
            raise ConfigurationError(f"phase {phase.name!r}: packed documents cannot be cut to length={length}")
        return batch

    def _stopped(self, plan: Plan, low: int) -> Plan:
        """Return `plan`, cut after the last step before a cap is exceeded if that is what `repeats` asks for.

        It has at least one step after step `low`.
        """
        if self.repeats is None or self.repeats.then != "stop":
            return plan
        caps = {component.name: self.repeats.draws(component.sequences) for component in plan.components}

        def over(step: int) -> list[str]:
            return [name for name, count in plan.draws(step).items() if count > caps[name]]

        if too_many := over(low + 1):
            raise ConfigurationError(f"step {low} already exceeds {self.repeats}: of {listed(too_many)}")
        low, high = low + 1, plan.steps
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (low, middle - 1) if over(middle) else (middle, high)
        return plan if low == plan.steps else replace(plan.truncate(low), earlier=plan.earlier)


def _plain(described: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a described object, without what wraps mappings and objects."""
    return {
        name: value.get("map", value) if isinstance(value, dict) else value
        for name, value in described["fields"].items()
    }


def _require_minimum(phase: Phase, length: int, counts: Mapping[str, int]) -> None:
    for name, share in phase.minimum.items():
        least = int(exact(share, name) * length)
        if counts.get(name, 0) < least:
            raise ConfigurationError(
                f"phase {phase.name!r} shall draw {name!r} at least {least:,} times, but caps leave "
                f"{counts.get(name, 0):,}: lower minimum= or raise AtMost(epochs)"
            )


def _shown(phase: Phase) -> str:
    weights = shown(phase.weights) if phase.others is None else f"{shown(phase.weights)}, others {phase.others}"
    least = "".join(f", at least {share} of {name}" for name, share in phase.minimum.items())
    return f"{weights}{least}".removeprefix(", ")


def _integers(weights: Mapping[str, Fraction]) -> dict[str, int]:
    integers = integer_ratio(list(weights.values()))
    return {name: weight for name, weight in zip(weights, integers, strict=True) if weight}
