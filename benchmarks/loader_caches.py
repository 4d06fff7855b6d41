"""Token caches on disk for the loader's benchmark: many different ones, and one as large as those of a plan of a TB."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.windows import draw_tokens, made_cache
from curate.caches import TokenCache
from curate.caches.description import NAME, read_description
from curate.caches.layout import LAYOUT, Layout
from curate.digests import digest_bytes
from curate.store import Store, json_line
from mixtures import Chunks, Loader, Mixture, Phase

POOL: Final = 1 << 16
"""Bytes of unpacked chunks kept per array: four chunks, so that every window is unpacked as it is in a large cache."""

SMALLEST: Final = 1 << 13
"""Tokens of the smallest cache."""

LARGE_SHARDS: Final = 150
"""Shards of 2^25 tokens: 5.03 G tokens, of which 200 components make 1.007 T."""


@contextmanager
def stored_caches(components: int, tokens: int, layout: Layout = LAYOUT) -> Iterator[dict[str, TokenCache]]:
    """Give `components` caches of uneven sizes on disk, of about `tokens` tokens together, cut by `layout`."""
    stream = draw_tokens(tokens)
    cuts = (
        np.sort(np.random.default_rng(components).choice(tokens // SMALLEST, components - 1, replace=False)) * SMALLEST
    )
    with tempfile.TemporaryDirectory() as folder:
        caches = {}
        for number, part in enumerate(np.split(stream, cuts)):
            place = Path(folder) / f"cell{number:04}"
            place.mkdir()
            made_cache(place, part, layout)
            caches[place.name] = TokenCache.open(place, pool=POOL)
        yield caches


def restart_seconds(components: int, sequence: int, batch: int) -> tuple[float, int]:
    """Return the seconds from opening the caches of a plan to the batch in its middle, and the plan's tokens.

    The caches are one cache of 150 shards, all with the same bytes, opened once for each component.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "large"
        tokens = _write_large(folder)
        opened = TokenCache.open(folder)
        caches = {f"cell{number:04}": opened for number in range(components)}
        weights = {cell: 1 + number for number, cell in enumerate(caches)}
        phase = Phase("main", tokens=components * tokens, weights=weights)
        plan = Mixture(None, phase, sequences=Chunks(sequence), repeats=None, batch=batch).compile(caches)
        began = time.perf_counter()
        again = {cell: TokenCache.open(folder) for cell in caches}
        Loader(plan, again).batch(plan.steps // 2)
        return time.perf_counter() - began, sum(cache.tokens for cache in again.values())


def _write_large(folder: Path) -> int:
    """Write a cache whose shards of tokens are links to one file; return how many tokens it has."""
    shard = LAYOUT.shard_tokens
    folder.mkdir()
    made_cache(folder, np.tile(draw_tokens(1 << 22), shard >> 22))
    description = read_description(Store(folder), None)
    spec = LAYOUT.array("tokens", "uint16", LARGE_SHARDS * shard, description.documents)
    first = description.array("tokens").file(0)
    files = dict(description.files)
    for number in range(1, LARGE_SHARDS):
        os.link(folder / "tokens" / first, folder / "tokens" / spec.file(number))
        files[f"tokens/{spec.file(number)}"] = files[f"tokens/{first}"]
    metadata = json_line(spec.metadata())
    (folder / "tokens" / "zarr.json").write_bytes(metadata)
    files["tokens/zarr.json"] = {"bytes": len(metadata), "digest": digest_bytes(metadata)}
    (folder / NAME).write_bytes(replace(description, tokens=spec.rows, files=files).to_bytes())
    return spec.rows
