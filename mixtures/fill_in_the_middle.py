"""Fill-in-the-middle as a view of a component: documents of a row rearranged so that a model learns to infill.

Bavarian et al., "Efficient training of language models to fill in the middle" (2022): a document is cut at two places
drawn evenly into prefix, middle and suffix, and stands as

    PSM   <prefix> prefix <suffix> suffix <middle> middle
    SPM   <prefix> <suffix> suffix <middle> prefix middle      (their variant 2, §3)

with sentinel tokens in angle brackets. It is done to each document of a row by itself (their context-level FIM, so that
no sequence begins with a middle whose prefix it lacks), on tokens: cuts fall between tokens, not within them as theirs
do. A document's end token stays last. Sentinels make a row longer; what goes beyond its end is left out.

Invariants: a pure function of (seed, component, pass, chunk) and of where documents lie in the row. Cost: about 10 ns a
token.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from curate.configuration import ConfigurationError
from mixtures.permutation import mix
from mixtures.weights import Number, exact
from transforms.canonical import canonical_json
from transforms.kernels import kernel

KIND: Final = "fill in the middle"
LONGEST: Final = 1 << 22
"""Tokens of the longest row: a cut is drawn from 42 bits."""

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_ONE: Final = np.uint64(1)


@dataclass(frozen=True, slots=True, init=False)
class FillInTheMiddle:
    """Rearranges a share `rate` of documents, a share `spm` of those suffix first.

    `prefix`, `suffix` and `middle` are the ids of the sentinel tokens, which must be ids of the tokenizer.
    """

    prefix: int
    suffix: int
    middle: int
    rate: Fraction
    spm: Fraction

    def __init__(self, prefix: int, suffix: int, middle: int, rate: Number = "1/2", spm: Number = "1/2") -> None:
        """Describe a view.

        Raises:
            ConfigurationError: sentinels are not three different ids, or a share is not from 0 to 1.
        """
        ids = (prefix, suffix, middle)
        if any(type(number) is not int or number < 0 for number in ids) or len(set(ids)) < 3:
            raise ConfigurationError(f"FillInTheMiddle(prefix, suffix, middle) needs three different ids, got {ids}")
        for name, value in {"prefix": prefix, "suffix": suffix, "middle": middle}.items():
            object.__setattr__(self, name, value)
        for name, share in {"rate": rate, "spm": spm}.items():
            fraction = exact(share, f"FillInTheMiddle({name})")
            if fraction > 1:
                raise ConfigurationError(f"FillInTheMiddle({name}) is a share from 0 to 1, got {share!r}")
            object.__setattr__(self, name, fraction)

    @property
    def sentinels(self) -> tuple[int, int, int]:
        """Ids of the prefix, suffix and middle sentinels."""
        return self.prefix, self.suffix, self.middle

    def to_json(self) -> dict[str, Any]:
        """Return what stands in a plan: shares as [numerator, denominator]."""
        shares = {name: [getattr(self, name).numerator, getattr(self, name).denominator] for name in ("rate", "spm")}
        return {"kind": KIND, "prefix": self.prefix, "suffix": self.suffix, "middle": self.middle, **shares}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FillInTheMiddle:
        """Return the view that a plan describes.

        Raises:
            ValueError: this version knows no such kind of view.
        """
        if value.get("kind") != KIND:
            raise ValueError(f'views of kind {value.get("kind")!r} are unknown to this version, which has "{KIND}"')
        rate, spm = Fraction(*value["rate"]), Fraction(*value["spm"])
        return cls(value["prefix"], value["suffix"], value["middle"], rate, spm)

    def sources(self, ends: Ints, ended: npt.NDArray[np.bool_], key: Keys, epoch: int, chunk: int) -> tuple[Ints, Ints]:
        """Return where the tokens of the rearranged row stood, and where its documents begin.

        Args:
            ends: where each document of the row ends, ascending.
            ended: whether a document's last token is its end token.
            key: `view_key` of the component.
            epoch: pass over the component.
            chunk: sequence of the component.

        Returns:
            sources: places in the old row; −1, −2, −3 for the prefix, suffix and middle sentinels.
            begins: first place of each document in the new row.
        """
        shares = np.array([_threshold(self.rate), _threshold(self.spm)], np.uint64)
        return _rearranged(ends, ended, key, np.uint64(epoch), np.uint64(chunk), shares)


def view_key(seed: int, name: str) -> Keys:
    """Return the two 64-bit words from which all cuts in the component `name` are drawn."""
    digest = blake3(canonical_json(["curate fill in the middle 1", seed, name]).encode()).digest(16)
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def _threshold(share: Fraction) -> int:
    """Return how many of 2^63 equally likely numbers are below `share`; all for 1."""
    return (share.numerator << 63) // share.denominator


@kernel
def _rearranged(
    ends: Ints, ended: npt.NDArray[np.bool_], key: Keys, epoch: np.uint64, chunk: np.uint64, shares: Keys
) -> tuple[Ints, Ints]:
    length = ends[-1] if len(ends) else 0
    sources, begins = np.empty(length + 3 * len(ends), np.int64), np.empty(len(ends), np.int64)
    state = mix(mix(key[0] + (epoch + _ONE) * _GOLDEN) ^ (key[1] + chunk))
    at, begin = np.int64(0), np.int64(0)
    for document in range(len(ends)):
        begins[document] = at
        stop = ends[document] - (1 if ended[document] else 0)
        size = np.uint64(max(stop - begin, 0))
        turn = state + np.uint64(4 * document) * _GOLDEN
        if mix(turn + _GOLDEN) >> _ONE < shares[0] and size > np.uint64(0):
            first = np.int64((mix(turn + np.uint64(3) * _GOLDEN) >> np.uint64(22)) * (size + _ONE) >> np.uint64(42))
            other = np.int64((mix(turn + np.uint64(4) * _GOLDEN) >> np.uint64(22)) * (size + _ONE) >> np.uint64(42))
            low, high = begin + min(first, other), begin + max(first, other)
            suffix_first = mix(turn + np.uint64(2) * _GOLDEN) >> _ONE < shares[1]
            sources[at] = -1
            at += 1
            if not suffix_first:
                at = _copied(sources, at, begin, low)
            sources[at] = -2
            at = _copied(sources, at + 1, high, stop)
            sources[at] = -3
            at += 1
            if suffix_first:
                at = _copied(sources, at, begin, low)
            at = _copied(sources, at, low, high)
        else:
            at = _copied(sources, at, begin, max(stop, begin))
        at = _copied(sources, at, max(stop, begin), ends[document])
        begin = ends[document]
    return sources[:at], begins


@kernel
def _copied(sources: Ints, at: np.int64, start: np.int64, stop: np.int64) -> np.int64:
    """Write the numbers from `start` to `stop` - 1 from place `at` on; return the place after them."""
    for number in range(start, stop):
        sources[at] = number
        at += 1
    return at
