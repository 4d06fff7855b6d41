"""Records that come again are found, whatever the batches: the first that ever came counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.readers.seen import Seen

SIZES = st.lists(st.integers(0, 6), max_size=20)


def rows(values: list[bytes]) -> npt.NDArray[np.uint8]:
    return np.frombuffer(b"".join(values), np.uint8).reshape(-1, 16)


def identity(number: int) -> bytes:
    """Return one of few ids, of which some share their first half, some their second."""
    return (number % 3).to_bytes(8, "little") + (number // 3).to_bytes(8, "little")


@settings(max_examples=200)
@given(sizes=SIZES, data=st.data())
def test_records_met_in_any_batches_are_those_of_one_dictionary(sizes: list[int], data: Any) -> None:
    known: dict[bytes, bytes] = {}
    seen = Seen()
    for size in sizes:
        ids = [identity(data.draw(st.integers(0, 11))) for _ in range(size)]
        digests = [bytes([data.draw(st.integers(0, 1))]) * 16 for _ in range(size)]
        before, clashes = [], None
        for row, (name, digest) in enumerate(zip(ids, digests, strict=True)):
            if name in known:
                before.append(row)
                clashes = row if clashes is None and known[name] != digest else clashes
            known.setdefault(name, digest)
        met = seen.meet(rows(ids), rows(digests))
        assert met.before.tolist() == before
        assert met.clashes == clashes


def test_runs_stay_few_and_hold_each_record_once() -> None:
    seen, draw = Seen(), np.random.default_rng(5)
    names = draw.integers(0, 256, (3000, 16), dtype=np.uint8)
    digests = names[:, ::-1].copy()
    for start in range(0, 3000, 100):
        met = seen.meet(names[start : start + 150], digests[start : start + 150])
        assert met.clashes is None
        assert len(met.before) == (50 if start else 0)
    assert sum(map(len, seen._runs)) == 3000
    assert len(seen._runs) <= 8
    assert len(seen.meet(names, digests).before) == 3000
