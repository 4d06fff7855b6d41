"""How the token stream of a component is cut into sequences: consecutive chunks, or whole documents packed together.

Invariant: every token of a component belongs to exactly one sequence, so a pass over the sequences is a pass over the
tokens; nothing is lost at the end of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from curate.configuration import ConfigurationError
from mixtures.cache import Cache
from mixtures.packing import Packing, pack
from mixtures.weights import Number, exact

Spans = list[tuple[int, int]]
"""First tokens, and those after the last, of the pieces of a stream that make up a sequence."""


@dataclass(frozen=True, slots=True)
class Chunks:
    """Consecutive stretches of `length` tokens, whatever documents they belong to.

    Chunk c of a stream of t tokens holds [c·length, min((c + 1)·length, t)): the last one may be shorter and is padded.
    Segment ids and positions start anew at each document border and at the beginning of a chunk.

    With a `share` below 1 only so many of a component's chunks are read, the first ones, rounded up: simulated
    epoching. A small run then repeats what it reads as often as the large run that it stands for. Documents lie in a
    cache in the order of a keyed digest, so the first chunks are a sample. See `simulating`.
    """

    length: int
    share: Number = 1

    def __post_init__(self) -> None:
        """Check both.

        Raises:
            ConfigurationError: `length` is not an integer of at least 2 (one token predicts nothing), or `share` is not
                above 0 and at most 1.
        """
        _require_length("Chunks", self.length)
        if not 0 < (share := exact(self.share, "Chunks(share)")) <= 1:
            raise ConfigurationError(f"Chunks(share) is above 0 and at most 1, got {self.share!r}")
        object.__setattr__(self, "share", 1 if share == 1 else share)

    @classmethod
    def simulating(cls, length: int, tokens: Number, target: Number) -> Chunks:
        """Return chunks for a run of `tokens` tokens that has the epochs of one of `target` tokens.

        Raises:
            ConfigurationError: `target` is less than `tokens`.
        """
        share = exact(tokens, "Chunks.simulating(tokens)") / (exact(target, "Chunks.simulating(target)") or 1)
        return cls(length, share)

    def __str__(self) -> str:
        return f"Chunks({self.length})" if self.share == 1 else f"Chunks({self.length}, share={self.share})"

    def count(self, tokens: int) -> int:
        """Return the number of sequences that are read of a stream of `tokens` tokens."""
        chunks = -(-tokens // self.length)
        return chunks if self.share == 1 else ceil(chunks * exact(self.share, "share"))

    def span(self, chunk: int, tokens: int) -> tuple[int, int]:
        """Return where chunk number `chunk` begins and ends in a stream of `tokens` tokens.

        Raises:
            IndexError: there is no such chunk.
        """
        start = chunk * self.length
        if not 0 <= start < tokens or (self.share != 1 and chunk >= self.count(tokens)):
            raise IndexError(f"chunk {chunk} is not in range({self.count(tokens)})")
        return start, min(start + self.length, tokens)

    def spans(self, chunk: int, tokens: int, packing: Packing | None) -> Spans:
        """Return where chunk number `chunk` lies in a stream of `tokens` tokens: one piece. Raises as `span` does."""
        del packing
        return [self.span(chunk, tokens)]

    def packing_of(self, cache: Cache) -> Packing | None:
        """Return None: chunks need no packing."""
        del cache
        return None

    def fits(self, sequences: int, tokens: int) -> bool:
        """Tell whether a stream of `tokens` tokens makes so many sequences."""
        return sequences == self.count(tokens)

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a plan."""
        share = {} if self.share == 1 else {"share": str(self.share)}
        return {"kind": "chunks", "length": self.length, **share}


@dataclass(frozen=True, slots=True)
class Packed:
    """Whole documents, several to a sequence of `length` tokens, by best fit: see `mixtures.packing`.

    Only documents longer than a sequence are cut; what is left free at the end of a sequence is padded. Reading costs a
    read per document instead of one per sequence.
    """

    length: int

    def __post_init__(self) -> None:
        """Check the length.

        Raises:
            ConfigurationError: `length` is not an integer of at least 2.
        """
        _require_length("Packed", self.length)

    def spans(self, chunk: int, tokens: int, packing: Packing | None) -> Spans:
        """Return where the pieces of sequence `chunk` lie in the stream.

        Raises:
            IndexError: there is no such sequence.
            ValueError: no packing is given.
        """
        if packing is None:
            raise ValueError(f"where packed sequences of {tokens:,} tokens lie is in their packing, and none is given")
        return packing.spans(chunk)

    def packing_of(self, cache: Cache) -> Packing:
        """Return how the documents of `cache` are packed."""
        return pack(cache.borders(0, cache.tokens), cache.tokens, self.length)

    def fits(self, sequences: int, tokens: int) -> bool:
        """Tell whether a stream of `tokens` tokens can make so many sequences, none of them empty."""
        return -(-tokens // self.length) <= sequences <= tokens

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a plan."""
        return {"kind": "packed", "length": self.length}


Sequences = Chunks | Packed


def sequences_from_json(value: Mapping[str, Any]) -> Sequences:
    """Return the sequences that a plan describes.

    Raises:
        ValueError: this version knows no such kind of sequences.
    """
    kinds: dict[Any, type[Chunks] | type[Packed]] = {"chunks": Chunks, "packed": Packed}
    if value.get("kind") not in kinds:
        known = " and ".join(f'"{kind}"' for kind in kinds)
        raise ValueError(f"sequences of kind {value.get('kind')!r} are unknown to this version, which has {known}")
    return kinds[value["kind"]](**{name: field for name, field in value.items() if name != "kind"})


def _require_length(name: str, length: int) -> None:
    if isinstance(length, bool) or not isinstance(length, int) or length < 2:
        raise ConfigurationError(f"{name}(length) needs an integer of at least 2, got {length!r}")
