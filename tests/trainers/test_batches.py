from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from tests.trainers.synthetic import SHAPE, VOCABULARY, MarkovLoader, sequences
from trainers.batches import checked, pack, read_update, tokens_before


@given(st.lists(st.integers(0, 20), max_size=12), st.integers(1, 3), st.integers(2, 9))
def test_packed_documents_hold_every_token_once_in_order_and_restart_at_each_border(lengths, batch, length):
    starts = np.cumsum([0, *lengths])
    documents = [np.arange(a, b) for a, b in pairwise(starts)]
    batches = pack(documents, batch, length)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    seen = []
    for part in batches:
        assert part.tokens.shape == (batch, length)
        for tokens, segments, positions, mask in zip(
            part.tokens, part.segments, part.positions, part.loss_mask, strict=True
        ):
            assert (segments[~mask] == -1).all()
            for place in np.flatnonzero(mask):
                first = place == 0 or segments[place] != segments[place - 1]
                assert positions[place] == (0 if first else positions[place - 1] + 1)
                if place and mask[place - 1]:
                    assert first == (owner[tokens[place]] != owner[tokens[place - 1]])
            seen += tokens[mask].tolist()
    assert seen == list(range(starts[-1]))
    assert len(batches) == -(-int(starts[-1]) // (batch * length))


def test_checked_batch_keeps_its_values_as_int32():
    batch = MarkovLoader().batch(0)
    wide = replace(batch, tokens=batch.tokens.astype(np.uint16), positions=batch.positions.astype(np.int64))
    found = checked(wide, VOCABULARY, SHAPE)
    assert found.tokens.dtype == found.positions.dtype == np.int32
    assert np.array_equal(found.tokens, batch.tokens)


@pytest.mark.parametrize("token", [VOCABULARY, -1])
def test_token_outside_the_vocabulary_is_refused(token):
    batch = MarkovLoader().batch(0)
    batch.tokens[1, 2] = token
    with pytest.raises(ConfigurationError, match=f"{token}.*vocabulary is 32"):
        checked(batch, VOCABULARY, SHAPE)


def test_batch_of_another_shape_is_refused_by_the_name_of_the_array():
    batch = MarkovLoader().batch(0)
    with pytest.raises(ConfigurationError, match=r"tokens.*\(4, 16\).*\(4, 17\)"):
        checked(batch, VOCABULARY, (4, 17))
    with pytest.raises(ConfigurationError, match="segments"):
        checked(replace(batch, segments=batch.segments[:, 1:]), VOCABULARY)


class Updates:
    """A loader whose updates have given shapes, as those of a plan with phases of their own."""

    def __init__(self, *shapes):
        self.shapes = shapes

    def batch(self, step):
        raise AssertionError(f"asked for the batch of step {step}, not for an update")

    def update(self, number):
        return sequences(np.zeros(self.shapes[number], np.int32))

    def tokens_before(self, number):
        return sum(rows * length for rows, length in self.shapes[:number])


def test_update_of_a_scheduled_loader_has_a_multiple_of_a_step_in_rows_that_divide_its_length():
    loader = Updates((4, 16), (8, 16), (16, 8), (4, 8), (4, 24), (6, 16))
    assert [read_update(loader, number, 32, (4, 16)).tokens.shape for number in range(3)] == [(4, 16), (8, 16), (16, 8)]
    assert tokens_before(loader, 3, (4, 16)) == 64 * 5
    for number in (3, 4, 5):
        with pytest.raises(ConfigurationError, match=r"expects \(4, 16\)"):
            read_update(loader, number, 32, (4, 16))
