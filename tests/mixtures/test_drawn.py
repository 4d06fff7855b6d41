"""Which steps draw given tokens: all of them, and no others, as explaining every step says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixtures.explain import Drawn, drawn, explain
from tests.mixtures.test_plan import PLAN

ROWS = [(step, number, row) for step in range(PLAN.steps) for number, row in enumerate(explain(PLAN, step).rows)]
TOKENS = {component.name: component.tokens for component in PLAN.components}


@given(st.sampled_from(sorted(TOKENS)), st.integers(0, 1300), st.integers(0, 60))
def test_drawn_are_the_rows_that_read_any_of_the_tokens(name, start, length):
    start = min(start, TOKENS[name])
    stop = min(start + length, TOKENS[name])
    expected = {
        Drawn(step, number, row.epoch, row.chunk)
        for step, number, row in ROWS
        if row.component == name and row.start < stop and start < row.stop and start < stop
    }
    found = list(drawn(PLAN, name, start, stop))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_drawn_of_tokens_that_are_not_there_is_refused():
    with pytest.raises(IndexError, match="law has tokens 0 to 332"):
        list(drawn(PLAN, "law", 300, 334))
    with pytest.raises(KeyError, match="no component 'none'"):
        list(drawn(PLAN, "none", 0, 1))
