"""Outcomes of slices, sent and joined, are the outcome of the batch."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest

from curate.isolation.replies import decode, encode, joined
from tests.transforms.documents import batch_of
from transforms.gopher_rules import GopherQuality


@pytest.mark.parametrize("cuts", [[0, 9], [0, 4, 9], [0, 1, 2, 8, 9]])
def test_slices_of_a_filter_join_to_the_outcome_of_the_batch(cuts: list[int]) -> None:
    batch = batch_of([f"the of and to {'word ' * n}" for n in range(42, 51)])
    parts = []
    for start, stop in pairwise(cuts):
        rows = batch.slice(start, stop - start)
        encoded = encode(GopherQuality().apply(rows), rows)
        body = pa.BufferOutputStream()
        for table in encoded.tables:
            with pa.ipc.new_stream(body, table.schema) as writer:
                writer.write_batch(table)
        parts.append(decode(encoded.header, body.getvalue(), batch, start, stop))
    found, plain = joined(parts, batch, batch.schema), GopherQuality().apply(batch)
    for name in ("kept", "dropped", "edits", "near"):
        assert getattr(found, name).equals(getattr(plain, name)), name
    assert found.spreads == plain.spreads and any(sum(spread.counts) == 9 for spread in plain.spreads)
