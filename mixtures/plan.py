"""The compiled mixture: integers, names and digests that say what every step of a training run reads.

A plan is a list of segments. A segment is a phase: counts by component over its full length (`quota_length`), of which
the first `drawn_length` sequences are drawn. Changing the future of a run cuts a segment short and appends others
(`continue_from`); what lies before that step is the same, bit for bit.

Its file is one line of canonical JSON and a line feed, no floats, with its own digest as the field `digest` (BLAKE3 of
the canonical JSON without it). `docs/mixtures.md` describes the fields and the arithmetic.

Invariant: (plan, sequence) → (component, pass, chunk) is a pure function; plans with equal digests give equal batches.
Cost: bytes and memory grow with components × segments, never with sequences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from curate.digests import digest_json
from mixtures.cache import Cache
from mixtures.differences import Difference, differences
from mixtures.errors import PlanError, outside
from mixtures.fill_in_the_middle import FillInTheMiddle
from mixtures.lookup import Draws, Lookup
from mixtures.packing import Packing
from mixtures.permutation import Permutation
from mixtures.plan_fields import Component, Earlier, Segment, Validation, to_json
from mixtures.plan_format import FORMAT, KIND, check_plan, read_fields, write_plan
from mixtures.sequences import Packed, Sequences, sequences_from_json
from mixtures.show import show_plan
from mixtures.updates import Update, update_counts, update_of


class Compiles(Protocol):
    """What a plan goes on with: a `mixtures.Mixture`."""

    def compile(
        self, caches: Mapping[str, Cache], validation: Mapping[str, Cache] = ..., *, past: Plan | None = None
    ) -> Plan:
        """Return the plan of the mixture; with `past`, the one that goes on from it."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled mixture; see the module. `Mixture.compile` makes one, `Plan.load` reads one."""

    seed: int
    batch: int
    """Sequences in a batch."""
    sequences: Sequences
    tokenizer: str
    """Digest of the tokenizer file of all caches."""
    vocabulary: int
    padding: int
    """Token id that fills up short sequences."""
    components: tuple[Component, ...]
    segments: tuple[Segment, ...]
    validation: tuple[Validation, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    views: Mapping[str, FillInTheMiddle] = field(default_factory=dict)
    """Component → how its documents are rearranged when they are read."""
    packings: Mapping[str, Packing] = field(default_factory=dict, repr=False, compare=False)
    """Component → how it is packed, as compiling found it; not in the file, see `mixtures.packings`."""
    digest: str = field(init=False)
    _lookup: Lookup = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that the fields fit together, and prepare the arithmetic.

        Raises:
            PlanError: they do not.
        """
        check_plan(self)
        object.__setattr__(self, "digest", digest_json(self.to_json()))
        sizes = {component.name: component.sequences for component in self.components}
        segments = [(segment.counts, segment.drawn_length) for segment in self.segments]
        object.__setattr__(self, "_lookup", Lookup.build(self.seed, sizes, segments))

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self._lookup)

    def __str__(self) -> str:
        return show_plan(self)

    @property
    def steps(self) -> int:
        """Number of batches."""
        return len(self) // self.batch

    @property
    def starts(self) -> tuple[int, ...]:
        """First step of each segment, and the number of steps at the end."""
        return tuple(start // self.batch for start in self._lookup.starts)

    @property
    def updates(self) -> int:
        """Number of updates of the optimizer: of steps, unless a phase has a batch of its own."""
        return sum(update_counts(self))

    def update(self, number: int) -> Update:
        """Return the steps that update `number` reads, and the length of its rows.

        Raises:
            IndexError: the plan has no such update.
        """
        return update_of(self, number)

    def phase_of(self, step: int) -> str:
        """Return the name of the phase of `step`.

        Raises:
            IndexError: the plan has no such step.
        """
        if not 0 <= step < self.steps:
            raise IndexError(outside("step", step, self.steps, "the plan"))
        return next(segment.phase for segment, stop in zip(self.segments, self.starts[1:], strict=True) if step < stop)

    def component_of(self, sequence: int) -> Component:
        """Return the component that `sequence` comes from.

        Raises:
            IndexError: the plan has no such sequence.
        """
        components, _ = self._lookup.number(np.array([sequence], np.int64))
        return self.components[int(components[0])]

    def draw(self, sequences: Sequence[int] | npt.NDArray[np.integer[Any]]) -> Draws:
        """Return (indices of components, passes, chunks) of `sequences`, which may be any, in any order.

        Raises:
            IndexError: the plan has no such sequence.
        """
        return self._lookup.draw(np.asarray(sequences, np.int64))

    def index(self, component: str, epoch: int, chunk: int) -> int | None:
        """Return the sequence that is `chunk` of `component` in pass `epoch`; None if the plan never gets there.

        Raises:
            KeyError: the plan has no such component.
            IndexError: the component has no such chunk.
        """
        return self._lookup.index(self.component_index(component), epoch, chunk)

    def component_index(self, name: str) -> int:
        """Return the index of the component `name`.

        Raises:
            KeyError: the plan has no such component.
        """
        for index, component in enumerate(self.components):
            if component.name == name:
                return index
        raise KeyError(f"no component {name!r}; there are {', '.join(c.name for c in self.components)}")

    def draws(self, step: int | None = None) -> dict[str, int]:
        """Return component → sequences drawn before `step` (by default: in the whole plan)."""
        length = len(self) if step is None else step * self.batch
        return dict(zip(self._lookup.names, self._lookup.drawn(length), strict=True))

    @property
    def undrawn(self) -> dict[str, tuple[str, ...]]:
        """Phase → components that it weights and, their shares being too small, never draws (`rare="merge:tail"`)."""
        return {
            segment.phase: tuple(name for name in segment.weights if name not in segment.counts)
            for segment in self.segments
            if segment.weights.keys() - segment.counts.keys()
        }

    def tokens_read(self, step: int | None = None) -> dict[str, int]:
        """Return component → tokens read before `step` (by default: in the whole plan), padding not counted.

        Exact for chunks, and for whole passes; packed sequences of a pass that is not over count as the average one.
        """
        counts = self.draws(step)
        return {component.name: self._tokens_of(component, counts[component.name]) for component in self.components}

    def diff(self, other: Plan) -> tuple[Difference, ...]:
        """Return the fields in which this plan and `other` differ, without their digests."""
        return tuple(differences(self.to_json(), other.to_json()))

    def agrees_with(self, digest: str, step: int) -> bool:
        """Tell whether the first `step` steps are those of the plan `digest`: whether a run may go on with this one."""
        return digest == self.digest or any(past.plan == digest and step <= past.steps for past in self.earlier)

    def truncate(self, step: int) -> Plan:
        """Return the plan of the first `step` steps, which says that it agrees with this one.

        Raises:
            IndexError: `step` is not from 1 to the number of steps.
        """
        if not 1 <= step <= self.steps:
            raise IndexError(f"a plan of {self.steps} steps can be cut after 1 to {self.steps} of them, not {step}")
        left, segments = step * self.batch, []
        for segment in self.segments:
            length = min(left, segment.drawn_length)
            if length:
                segments.append(replace(segment, drawn_length=length))
            left -= length
        earlier = [Earlier(past.plan, min(past.steps, step)) for past in self.earlier]
        return replace(self, segments=tuple(segments), earlier=(*earlier, Earlier(self.digest, step)))

    def continue_from(
        self,
        step: int,
        mixture: Compiles,
        caches: Mapping[str, Cache],
        validation: Mapping[str, Cache] = MappingProxyType({}),
    ) -> Plan:
        """Return the plan whose first `step` steps are this one's, followed by the phases of `mixture`.

        Caps count what was drawn before. Components may be added and left out; everything else that reaches batches
        must be as it is here.

        Raises:
            PlanError: the seed, batch size, sequences, tokenizer, validation, or a component's cache is another; the
                error names the first such field.
            ConfigurationError: the mixture cannot be compiled.
        """
        return mixture.compile(caches, validation, past=self.truncate(step))

    def check_caches(self, caches: Mapping[str, Cache]) -> None:
        """Check that `caches` are those that the plan was compiled for.

        Raises:
            PlanError: a cache is missing or has another digest, tokenizer or number of tokens; names all such fields.
        """
        wrong = []
        for component in self.components:
            if (cache := caches.get(component.name)) is None:
                wrong.append(f"{component.name}: missing")
                continue
            ours = {"cache": component.cache, "tokenizer": self.tokenizer, "tokens": component.tokens}
            theirs = {"cache": cache.digest, "tokenizer": cache.tokenizer, "tokens": cache.tokens}
            wrong += [str(difference) for difference in differences(ours, theirs, component.name)]
        if wrong:
            raise PlanError(f"plan {self.digest[:16]} and caches do not fit (plan ≠ cache): {'; '.join(wrong)}")

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they stand in the file, without the digest."""
        fields = {name: to_json(getattr(self, name)) for name in _FIELDS if name != "views" or self.views}
        return {"kind": KIND, "format": FORMAT.stamp, **fields}

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan whose file holds `text`.

        Raises:
            PlanError: it is no plan, has another version, was edited, or its fields do not fit together.
        """
        value = read_fields(text)
        try:
            plan = cls(
                **{name: value[name] for name in ("seed", "batch", "tokenizer", "vocabulary", "padding")},
                sequences=sequences_from_json(value["sequences"]),
                components=tuple(Component(**item) for item in value["components"]),
                segments=tuple(Segment(**item) for item in value["segments"]),
                validation=tuple(Validation(**item) for item in value["validation"]),
                earlier=tuple(Earlier(**item) for item in value["earlier"]),
                views={name: FillInTheMiddle.from_json(view) for name, view in value.get("views", {}).items()},
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise PlanError(f"not a plan that this version can read: {error}") from error
        return plan

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to `path`, whole or not at all.

        Raises:
            PlanError: there is another plan already; plans are never overwritten.
        """
        write_plan(Path(path), self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str], digest: str | None = None) -> Plan:
        """Read the plan at `path`; `digest` is what it must have, as a checkpoint or a page quotes it.

        Raises:
            PlanError: as `from_json`, or the digest is another.
        """
        try:
            plan = cls.from_json(Path(path).read_text("utf-8"))
        except (PlanError, UnicodeDecodeError) as error:
            raise PlanError(f"{path}: {error}") from error
        if digest is not None and digest != plan.digest:
            raise PlanError(f"{path}: another plan, digest: {plan.digest} ≠ {digest}")
        return plan

    def _tokens_of(self, component: Component, draws: int) -> int:
        """Return the tokens in the first `draws` draws of `component`: its last chunk may be short."""
        passes, rest = divmod(draws, component.sequences)
        if isinstance(self.sequences, Packed):
            return passes * component.tokens + rest * component.tokens // component.sequences
        size = min(component.tokens, component.sequences * self.sequences.length)
        tokens, short = passes * size + rest * self.sequences.length, component.sequences * self.sequences.length - size
        if rest and short:
            order = Permutation(component.sequences, self.seed, component.name, passes)
            tokens -= short * (order.index(component.sequences - 1) < rest)
        return tokens


_FIELDS: Final = tuple(name for name, field in Plan.__dataclass_fields__.items() if field.init and name != "packings")
