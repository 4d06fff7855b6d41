"""How the token stream of a component is cut into sequences.

Invariant: every token of a component belongs to exactly one sequence, so a pass over the sequences is a pass over the
tokens; nothing is lost at the end of a stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from curate.configuration import ConfigurationError


@dataclass(frozen=True, slots=True)
class Chunks:
    """Consecutive stretches of `length` tokens, whatever documents they belong to.

    Chunk c of a stream of t tokens holds [c·length, min((c + 1)·length, t)): the last one may be shorter and is padded.
    Segment ids and positions start anew at each document border and at the beginning of a chunk.
    """

    length: int

    def __post_init__(self) -> None:
        """Check the length.

        Raises:
            ConfigurationError: `length` is not an integer of at least 2 (one token predicts nothing).
        """
        if isinstance(self.length, bool) or not isinstance(self.length, int) or self.length < 2:
            raise ConfigurationError(f"Chunks(length) needs an integer of at least 2, got {self.length!r}")

    def count(self, tokens: int) -> int:
        """Return the number of sequences of a stream of `tokens` tokens."""
        return -(-tokens // self.length)

    def span(self, chunk: int, tokens: int) -> tuple[int, int]:
        """Return where chunk number `chunk` begins and ends in a stream of `tokens` tokens.

        Raises:
            IndexError: there is no such chunk.
        """
        if not 0 <= chunk < self.count(tokens):
            raise IndexError(f"chunk {chunk} is not in range({self.count(tokens)})")
        return chunk * self.length, min((chunk + 1) * self.length, tokens)

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a plan."""
        return {"kind": "chunks", "length": self.length}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Chunks:
        """Return the sequences that a plan describes.

        Raises:
            ValueError: this version knows no such kind of sequences.
        """
        if value.get("kind") != "chunks":
            raise ValueError(f'sequences of kind {value.get("kind")!r} are unknown to this version, which has "chunks"')
        return cls(value["length"])
