"""Updates of the optimizer: batch sizes and lengths that change, over steps that do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from curate.store import json_line
from mixtures import Chunks, Loader, Mixture, Packed, Phase, Plan
from tests.mixtures.memory import caches_of

CACHES = caches_of(a=[5, 30, 3, 64, 7] * 9, b=[16 * 40])


def plan_of(*phases: Phase, **settings: Any) -> Plan:
    given = {"sequences": Chunks(16), "batch": 4, "repeats": None, **settings}
    return Mixture(None, *phases, **given).compile(CACHES)


def phase(name: str, sequences: int, **settings: Any) -> Phase:
    return Phase(name, 16 * sequences, {"a": 1, "b": 2}, **settings)


def test_schedule_is_part_of_the_plan_and_steps_stay_as_they_are() -> None:
    plain = plan_of(phase("warm", 16), phase("main", 48))
    plan = plan_of(phase("warm", 16, length=4), phase("main", 48, batch=16))
    assert (plan.steps, plan.updates, plain.updates) == (16, 4 + 3, 16)
    assert [tuple(plan.update(number)) for number in (0, 3, 4, 6)] == [
        ("warm", 0, 1, 4), ("warm", 3, 4, 4), ("main", 4, 8, 16), ("main", 12, 16, 16),
    ]  # fmt: skip
    assert np.array_equal(plan.draw(range(64)).chunks, plain.draw(range(64)).chunks)
    assert plan.digest != plain.digest
    assert "batch" not in plain.to_json()["segments"][0]
    again = Plan.from_json(json_line({**plan.to_json(), "digest": plan.digest}).decode())
    assert again.segments == plan.segments
    assert "updates of 4 × 4" in str(plan)
    assert "updates of 16 × 16" in str(plan)


def test_phase_is_rounded_up_to_whole_updates_and_a_cut_one_ends_with_a_smaller() -> None:
    plan = plan_of(phase("main", 17, batch=16))
    assert (plan.steps, plan.updates) == (8, 2)
    cut = plan.truncate(5)
    assert [tuple(cut.update(number))[1:3] for number in range(cut.updates)] == [(0, 4), (4, 5)]


def test_rows_of_a_shorter_length_are_those_that_shorter_chunks_would_be() -> None:
    plan = plan_of(phase("main", 40, length=4))
    short = plan_of(phase("main", 40), sequences=Chunks(4))
    long, direct, compared = Loader(plan, CACHES), Loader(short, CACHES), 0
    for number in range(plan.updates):
        rows = long.update(number)
        draws = plan.draw(rows.sequences[::4])
        for row in range(len(rows)):
            name = plan.components[int(rows.components[row])].name
            chunk = 4 * int(draws.chunks[row // 4]) + row % 4
            if (at := short.index(name, 0, chunk) if chunk < -(-CACHES[name].tokens // 4) else None) is None:
                continue
            other, compared = direct[at], compared + 1
            for field in ("tokens", "segments", "positions", "loss_mask"):
                assert np.array_equal(getattr(rows, field)[row], getattr(other, field)[0]), field
    assert compared >= 30


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.sampled_from([None, 4, 8, 24]), st.sampled_from([None, 2, 8])),
        min_size=1, max_size=3,
    ),
    st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_updates_of_any_schedule_read_each_step_once_in_order_for_any_split(
    made: list[tuple[int, int | None, int | None]], processes: int
) -> None:
    plan = plan_of(*(phase(f"p{at}", size, batch=b, length=n) for at, (size, b, n) in enumerate(made)))
    loader = Loader(plan, CACHES)
    updates = [plan.update(number) for number in range(plan.updates)]
    assert [step for update in updates for step in range(update.start, update.stop)] == list(range(plan.steps))
    assert all(plan.phase_of(update.start) == plan.phase_of(update.stop - 1) == update.phase for update in updates)
    for number in {0, plan.updates // 2, plan.updates - 1}:
        whole = loader.update(number)
        parts = [loader.update(number, process, processes) for process in range(processes)]
        for field in ("tokens", "segments", "positions", "loss_mask", "sequences"):
            assert np.array_equal(getattr(whole, field), np.concatenate([getattr(part, field) for part in parts]))
        assert whole.tokens.shape[1] == updates[number].length
        assert not whole.loss_mask[:, 0].any()
        assert loader.tokens_before(number + 1) - loader.tokens_before(number) == whole.tokens.size
        assert (whole.positions[:, 0] == 0).all()
    with pytest.raises(IndexError, match="is not in range"):
        plan.update(plan.updates)


@pytest.mark.parametrize(
    ("phase_settings", "mixture_settings", "said"),
    [
        ({"batch": 6}, {}, "no multiple of Mixture\\(batch=4\\)"),
        ({"length": 5}, {}, "does not divide 16"),
        ({"length": 1}, {}, "does not divide 16"),
        ({"length": 8}, {"sequences": Packed(16)}, "cannot be cut"),
    ],
)
def test_schedules_that_do_not_fit_are_refused(
    phase_settings: dict[str, Any], mixture_settings: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        plan_of(phase("main", 16, **phase_settings), **mixture_settings)
