"""Whether caches may be mixed and validated against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from curate.configuration import ConfigurationError
from mixtures.cache import Cache

Digests = npt.NDArray[np.uint8]


def check_caches(caches: Mapping[str, Cache], validation: Mapping[str, Cache]) -> str:
    """Return the digest of the one tokenizer of all caches.

    Raises:
        ConfigurationError: there is none, one is empty, or they differ in tokenizer, vocabulary or end of documents.
    """
    if not caches:
        raise ConfigurationError("a mixture needs at least one component, there is none")
    everything = {**{f"validation {name}": cache for name, cache in validation.items()}, **caches}
    empty = sorted(name for name, cache in everything.items() if cache.tokens < 1)
    if empty:
        raise ConfigurationError(f"components without a token: {', '.join(empty)}. Leave them out, or look why")
    for field in ("tokenizer", "vocabulary", "eos"):
        _require_same(field, {name: getattr(cache, field) for name, cache in sorted(everything.items())})
    return next(iter(caches.values())).tokenizer


def check_validation(caches: Mapping[str, Cache], validation: Mapping[str, Cache]) -> None:
    """Check that no text is both trained on and held out.

    Raises:
        ConfigurationError: there are such texts; says in which caches, how many, and the digest of one.
    """
    held = {name: cache.text_digests() for name, cache in validation.items()}
    for name, cache in caches.items() if held else ():
        digests = cache.text_digests()
        for other, held_digests in held.items():
            if shared := shared_digests(digests, held_digests):
                raise ConfigurationError(
                    f"component {name!r} shares {len(shared):,} texts with the validation cache {other!r}, as "
                    f"{min(shared).hex()}: hold texts out before they are tokenized"
                )


def shared_digests(left: Digests, right: Digests) -> set[bytes]:
    """Return the 16-byte digests that stand in both arrays of shape (n, 16). Memory: 9 bytes per row of `left`."""
    if not len(left) or not len(right):
        return set()
    ordered = np.unique(_first_half(right))
    halves = _first_half(left)
    near = ordered[np.minimum(np.searchsorted(ordered, halves), len(ordered) - 1)] == halves
    return {row.tobytes() for row in left[near]} & {row.tobytes() for row in right}


def _first_half(digests: Digests) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(digests[:, :8]).view("<u8").reshape(-1)


def _require_same(field: str, values: Mapping[str, Any]) -> None:
    names = list(values)
    for name in names[1:]:
        if values[name] != values[names[0]]:
            raise ConfigurationError(
                f"caches of one mixture share their {field}: {names[0]!r} has {values[names[0]]}, "
                f"{name!r} has {values[name]}"
            )
