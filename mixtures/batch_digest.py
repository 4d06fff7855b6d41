"""The digest of batches: what two people compare who want to know whether they train on the same thing."""

from __future__ import annotations

from collections.abc import Mapping

from blake3 import blake3

from mixtures.cache import Cache
from mixtures.loader import Loader
from mixtures.plan import Plan


def batch_digest(plan: Plan, caches: Mapping[str, Cache], start: int, stop: int) -> str:
    """Return BLAKE3 over tokens, segments, positions and loss masks of steps `start` to `stop` - 1, as they follow.

    Integers are little-endian, 32 bits; masks one byte an entry. Cost: reading the batches.

    Raises:
        IndexError: the plan has no such steps.
    """
    hasher = blake3()
    for batch in Loader(plan, caches).batches(start, stop):
        for array in (batch.tokens, batch.segments, batch.positions):
            hasher.update(array.astype("<i4").tobytes())
        hasher.update(batch.loss_mask.astype("u1").tobytes())
    return hasher.hexdigest()
