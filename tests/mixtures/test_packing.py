from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures import Loader, Mixture, Packed, Phase, Plan, PlanError
from mixtures.packing import Packing, pack
from tests.mixtures.memory import caches_of


def packed(lengths, length):
    lengths = np.array(lengths, np.int64)
    return pack(np.cumsum(lengths) - lengths, int(lengths.sum()), length)


def plain_best_fit(lengths, length):
    """How many sequences best-fit decreasing makes, by definition and not by speed."""
    rests = [size % length if size > length else size for size in lengths]
    rooms = []
    for rest in sorted(filter(None, rests), reverse=True):
        fitting = [at for at, room in enumerate(rooms) if room >= rest]
        if fitting:
            rooms[min(fitting, key=lambda at: rooms[at])] -= rest
        else:
            rooms.append(length - rest)
    return len(rooms) + sum(size // length for size in lengths if size > length)


documents = st.lists(st.integers(0, 700), min_size=1, max_size=60).filter(any)


@given(documents, st.sampled_from([2, 3, 63, 64, 65, 100, 4100]))
@settings(max_examples=150)
def test_packing_holds_each_token_once_and_cuts_only_what_is_too_long(lengths, length):
    packing = packed(lengths, length)
    seen = np.zeros(sum(lengths), np.int64)
    starts = dict(zip(np.cumsum(lengths) - lengths, lengths, strict=True))
    for sequence in range(len(packing)):
        spans = packing.spans(sequence)
        assert 0 < sum(stop - start for start, stop in spans) <= length
        assert spans == sorted(spans)
        for start, stop in spans:
            seen[start:stop] += 1
    assert (seen == 1).all()
    whole = {span for sequence in range(len(packing)) for span in packing.spans(sequence)}
    assert all((start, start + size) in whole for start, size in starts.items() if 0 < size <= length)
    assert len(packing) == plain_best_fit(lengths, length)
    assert packing.padding == len(packing) * length - sum(lengths)
    assert packing.cut == sum(size > length for size in lengths)


def test_packing_fills_the_tightest_sequence_and_of_equal_ones_the_last_used():
    packing = packed([7, 6, 3, 4, 3], 10)  # 6 meets 4; of the 3s the first meets 7, the other is alone
    assert [packing.spans(at) for at in range(3)] == [[(0, 7), (13, 16)], [(7, 13), (16, 20)], [(20, 23)]]


def test_document_of_two_and_a_half_sequences_fills_two_and_shares_one():
    packing = packed([25, 5], 10)
    assert [packing.spans(at) for at in range(len(packing))] == [[(20, 25), (25, 30)], [(0, 10)], [(10, 20)]]
    assert packing.sequences_of(9, 11) == [1, 2]
    assert packing.sequences_of(24, 26) == [0]


def test_packing_that_was_written_is_read_again():
    packing = packed([3, 9, 30, 1], 10)
    again = Packing.from_bytes(packing.to_bytes())
    assert again.digest == packing.digest
    assert [again.spans(at) for at in range(len(again))] == [packing.spans(at) for at in range(len(packing))]


def test_packing_that_was_damaged_is_refused():
    content = packed([3, 9, 30, 1], 10).to_bytes()
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with pytest.raises(PlanError):
            Packing.from_bytes(bytes(damaged))
    with pytest.raises(PlanError):
        Packing.from_bytes(content[:-8])


def test_sequence_that_is_not_there_is_an_index_error():
    with pytest.raises(IndexError, match=r"sequence 2 is not in range\(2\)"):
        packed([9, 9], 10).spans(2)


def test_loader_takes_the_packings_of_compiling_and_refuses_those_of_another_plan():
    caches = caches_of(web=[7, 30, 12, 1, 25] * 9)
    phase = Phase("main", 24 * 48, {"web": 1})
    plans = [Mixture(None, phase, sequences=Packed(n), repeats=None, batch=8).compile(caches) for n in (24, 32)]
    assert Loader(plans[0], caches).packings["web"] is plans[0].packings["web"]
    read = Plan.from_json(json.dumps({**plans[0].to_json(), "digest": plans[0].digest}))
    assert not read.packings and read == plans[0]
    assert Loader(read, caches).packings["web"].digest == plans[0].components[0].packing
    with pytest.raises(PlanError, match=r"web, packing: .* that of another plan"):
        Loader(plans[0], caches, packings=plans[1].packings)
