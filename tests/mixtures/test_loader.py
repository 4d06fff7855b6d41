from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixtures import Chunks, Loader, Mixture, Phase, PlanError, explain, locate
from mixtures.rows import fill_row
from tests.mixtures.memory import caches_of, make_cache

CACHES = caches_of(web=[40, 1, 0, 0, 7] * 30, code=[7, 0, 93, 300, 55], law=[333], tiny=[5])
PHASES = Phase("main", 16 * 240, {"web": 3, "code": 1, "tiny": 1}, others=2), Phase("end", 16 * 80, {}, others=1)
PLAN = Mixture(None, *PHASES, sequences=Chunks(16), repeats=None, batch=8).compile(CACHES)
LOADER = Loader(PLAN, CACHES)
ARRAYS = "tokens", "segments", "positions", "loss_mask", "sequences", "components"


def same(left, right):
    return all(np.array_equal(getattr(left, name), getattr(right, name)) for name in ARRAYS)


def joined(batches):
    """One batch of the rows of `batches`."""
    return replace(batches[0], **{name: np.concatenate([getattr(b, name) for b in batches]) for name in ARRAYS})


def row_reference(cache, start, stop, length, padding):
    """A row token by token."""
    tokens, segments, positions, mask = [], [], [], []
    borders = set(cache.starts.tolist())
    segment = position = 0
    for at in range(start, stop):
        if at == start or at in borders:
            segment, position = segment + 1, 0
        tokens.append(int(cache.stream[at]))
        segments.append(segment)
        positions.append(position)
        mask.append(position > 0)
        position += 1
    fill = length - len(tokens)
    return tokens + [padding] * fill, segments + [0] * fill, positions + [0] * fill, mask + [False] * fill


def test_batches_hold_what_the_plan_says_token_by_token():
    assert len(LOADER) == len(PLAN) == 320
    for step in range(PLAN.steps):
        batch = LOADER.batch(step)
        assert batch.sequences.tolist() == list(range(step * 8, step * 8 + 8))
        for row, place in enumerate(explain(PLAN, step).rows):
            cache = CACHES[place.component]
            expected = row_reference(cache, place.start, place.stop, 16, 3)
            found = batch.tokens[row], batch.segments[row], batch.positions[row], batch.loss_mask[row]
            assert [array.tolist() for array in found] == list(expected)
            assert PLAN.components[batch.components[row]].name == place.component


def test_batches_have_the_types_that_they_promise():
    batch = LOADER.batch(0)
    assert [getattr(batch, name).dtype.name for name in ARRAYS] == ["int32", "int32", "int32", "bool", "int64", "int64"]
    assert batch.tokens.shape == batch.loss_mask.shape == (8, 16)
    assert len(batch) == 8


def test_a_pass_reads_every_token_of_a_component_once():
    for name, cache in CACHES.items():
        size = PLAN.components[PLAN.component_index(name)].sequences
        read = []
        for chunk in range(size):
            sequence = PLAN.index(name, 0, chunk)
            if sequence is not None:
                row = LOADER[sequence]
                read += row.tokens[row.segments > 0].tolist()
                assert (row.tokens[row.segments == 0] == 3).all()
        if name in ("tiny", "law", "code"):
            assert sorted(read) == sorted(cache.stream.tolist()), name


@settings(max_examples=40)
@given(st.integers(0, PLAN.steps - 1), st.sampled_from([1, 2, 4, 8]), st.integers(1, 3), st.integers(1, 5), st.data())
def test_random_access_iteration_hosts_and_resumed_runs_agree(start, processes, threads, ahead, data):
    stop = data.draw(st.integers(start, min(start + 6, PLAN.steps)))
    loader = replace(LOADER, threads=threads, ahead=ahead)
    expected = [LOADER.batch(step) for step in range(start, stop)]
    iterated = list(loader.batches(start, stop))
    hosts = [list(loader.batches(start, stop, process=p, processes=processes)) for p in range(processes)]
    assert len(iterated) == stop - start
    for at, batch in enumerate(expected):
        assert same(batch, iterated[at])
        assert same(batch, joined([host[at] for host in hosts]))
        assert same(batch, joined([LOADER[int(sequence)] for sequence in batch.sequences]))
        assert same(batch, joined([LOADER.slice(start + at, p, processes) for p in range(processes)]))


def test_batches_to_the_end_come_in_order_and_can_be_left_early():
    sequences = [int(batch.sequences[0]) for batch in LOADER.batches(35)]
    assert sequences == [step * 8 for step in range(35, PLAN.steps)]
    for batch in LOADER.batches():
        assert batch.sequences[0] == 0
        break
    assert list(LOADER.batches(PLAN.steps)) == []


def test_batches_of_a_continued_plan_are_the_same_up_to_the_step():
    caches = {**CACHES, "aaa": make_cache("aaa", [4000])}
    mixture = Mixture(None, Phase("late", 16 * 80, {}, others=1), sequences=Chunks(16), repeats=None, batch=8)
    loader = Loader(PLAN.continue_from(17, mixture, caches), caches)
    assert all(same(loader.batch(step), LOADER.batch(step)) for step in range(17))
    assert any((loader.batch(step).components == 4).any() for step in range(17, 27))


def test_loader_outside_the_plan_is_refused():
    for call in (
        lambda: LOADER.batch(PLAN.steps),
        lambda: LOADER.batch(-1),
        lambda: LOADER[320],
        lambda: LOADER.batches(3, 2),
        lambda: LOADER.batches(0, PLAN.steps + 1),
    ):
        with pytest.raises(IndexError, match=r"the plan has steps 0 to 39|sequence 320 is not in range"):
            call()
    for process, processes in ((0, 3), (2, 2), (-1, 2), (0, 0)):
        with pytest.raises(ValueError, match="a batch of 8 has no part"):
            LOADER.slice(0, process, processes)
    with pytest.raises(ValueError, match="at least 1"):
        replace(LOADER, threads=0)


def test_loader_with_other_caches_is_refused():
    with pytest.raises(PlanError, match="tiny: missing"):
        Loader(PLAN, {name: cache for name, cache in CACHES.items() if name != "tiny"})


class CutShort:
    """A cache that says that it holds all its tokens, but reads only half of them."""

    def __init__(self, cache):
        self.cache = cache

    def __getattr__(self, name):
        return getattr(self.cache, name)

    def read_many(self, ranges):
        return [self.cache.read(start, min(stop, self.cache.tokens // 2)) for start, stop in ranges]


def test_loader_of_a_cache_cut_short_says_what_is_missing():
    loader = Loader(PLAN, {**CACHES, "law": CutShort(CACHES["law"])})
    with pytest.raises(PlanError, match=r"the cache of 'law' is cut short: tokens \d+ to \d+ asked, got \d+ of \d+"):
        for step in range(PLAN.steps):
            loader.batch(step)
    with pytest.raises(PlanError, match="cut short"):
        list(loader.batches())


def test_tokens_of_32_bits_are_read_too():
    caches = {name: replace(cache, stream=cache.stream.astype(np.uint32)) for name, cache in CACHES.items()}
    assert same(Loader(PLAN, caches).batch(5), LOADER.batch(5))


@given(st.integers(0, 20), st.integers(0, 20), st.lists(st.integers(0, 25)), st.integers(0, 1000))
def test_row_equals_reference_for_any_borders(tokens, more, borders, start):
    stream = np.arange(tokens, dtype=np.uint16)
    starts = np.array(sorted(start + border for border in borders), np.int64)
    cache = replace(CACHES["tiny"], stream=np.arange(start + tokens), starts=starts)
    rows = [np.full((2, tokens + more), -1, np.int32) for _ in range(3)]
    mask = np.ones((2, tokens + more), bool)
    fill_row(stream, starts, start, 9, 1, *rows, mask)
    expected = row_reference(cache, start, start + tokens, tokens + more, 9)
    expected = ([token - start if at < tokens else 9 for at, token in enumerate(expected[0])], *expected[1:])
    assert [array[1].tolist() for array in (*rows, mask)] == list(expected)
    assert all((array[0] == -1).all() for array in rows)


def test_locate_finds_the_token_of_every_place_in_a_batch():
    for step in (0, 13, 39):
        batch = LOADER.batch(step)
        for row in range(8):
            for token in range(16):
                if batch.segments[row, token] == 0:
                    with pytest.raises(IndexError, match="is padding"):
                        locate(PLAN, step, row, token)
                    continue
                place = locate(PLAN, step, row, token)
                assert CACHES[place.component].stream[place.token] == batch.tokens[row, token]
                assert place.token // 16 == place.chunk


def test_explain_locate_and_loader_agree_at_ten_thousand_random_steps():
    phases = Phase("main", 16 * 8 * 30_000, {"web": 3, "code": 1}, others=1), Phase("end", 16 * 8 * 9_000, {}, others=1)
    plan = Mixture(None, *phases, sequences=Chunks(16), repeats=None, batch=8).compile(CACHES)
    loader = Loader(plan, CACHES)
    draw = np.random.default_rng(11)
    for step in draw.choice(plan.steps, 10_000, replace=False).tolist():
        batch = loader.batch(step)
        rows = explain(plan, step).rows
        for row, place in enumerate(rows):
            assert plan.components[int(batch.components[row])].name == place.component
            assert int(batch.sequences[row]) == place.sequence
            length = place.stop - place.start
            stream = CACHES[place.component].stream[place.start : place.stop]
            assert np.array_equal(batch.tokens[row, :length], stream)
            assert not batch.segments[row, length:].any()
        row = step % 8
        token = step % (rows[row].stop - rows[row].start)
        found = locate(plan, step, row, token)
        assert (found.component, found.epoch, found.chunk) == (rows[row].component, rows[row].epoch, rows[row].chunk)
        assert CACHES[found.component].stream[found.token] == batch.tokens[row, token]


def test_explain_outside_the_plan_is_refused():
    for call in (
        lambda: explain(PLAN, PLAN.steps),
        lambda: locate(PLAN, 0, 8, 0),
        lambda: locate(PLAN, 0, 0, 16),
        lambda: locate(PLAN, 0, -1, 0),
    ):
        with pytest.raises(IndexError, match=r"has (step|row|token)s 0 to "):
            call()


def test_explanation_prints_chunks_by_component_and_pass():
    text = str(explain(PLAN, 30))
    assert text.startswith("step 30, phase end, sequences 240 to 247\n")
    assert "  tiny, pass " in text
