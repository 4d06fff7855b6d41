from __future__ import annotations

import numpy as np
import pytest

from mixtures import Chunks, FillInTheMiddle, Loader, Mixture, Phase
from mixtures.agreement import steps_in_common
from tests.mixtures.memory import caches_of

CACHES = caches_of(web=[40, 1, 0, 7] * 30, code=[7, 93, 300, 55], law=[333])


def plan_of(*, last=1, seed=7, length=16, batch=8, views=None, caches=CACHES):
    phases = Phase("main", 16 * 240, {}, others=1), Phase("end", 16 * 160, {"web": last}, others=1)
    mixture = Mixture(None, *phases, sequences=Chunks(length), repeats=None, batch=batch, seed=seed, views=views or {})
    return mixture.compile(caches)


PLAN = plan_of()


def first_difference(plan, other, caches=CACHES, other_caches=CACHES):
    """The first step whose batches differ, read from the caches."""
    ours, theirs = Loader(plan, caches), Loader(other, other_caches)
    for step in range(min(plan.steps, other.steps)):
        left, right = ours.batch(step), theirs.batch(step)
        if not all(np.array_equal(getattr(left, name), getattr(right, name)) for name in ("tokens", "segments")):
            return step
    return min(plan.steps, other.steps)


@pytest.mark.parametrize(
    ("other", "expected"),
    [(plan_of(), 50), (PLAN.truncate(41), 41), (plan_of(last=9), 30), (plan_of(seed=8), 0)],
)
def test_steps_in_common_are_those_whose_batches_are_equal(other, expected):
    assert steps_in_common(PLAN, other) >= expected
    assert steps_in_common(PLAN, other) == steps_in_common(other, PLAN) == first_difference(PLAN, other)


@pytest.mark.parametrize("other", [plan_of(length=32), plan_of(batch=4)])
def test_plans_of_other_shapes_have_no_step_in_common(other):
    assert steps_in_common(PLAN, other) == 0


def test_continued_plan_shares_the_past():
    future = Mixture(
        None, Phase("new", 16 * 80, {"law": 5}, others=1), sequences=Chunks(16), repeats=None, batch=8, seed=7
    )
    assert steps_in_common(PLAN, PLAN.continue_from(20, future, CACHES)) >= 20


def test_rows_that_are_shown_in_another_way_are_not_the_same():
    view = plan_of(views={"law": FillInTheMiddle(1, 2, 3, rate=1)})
    law = next(
        step for step in range(PLAN.steps) if any(PLAN.component_of(8 * step + r).name == "law" for r in range(8))
    )
    assert steps_in_common(PLAN, view) == law


def test_component_with_other_tokens_is_not_the_same():
    other = caches_of(web=[40, 1, 0, 7] * 30, code=[7, 93, 300, 55], law=[332, 1])
    plan = plan_of(caches=other)
    assert steps_in_common(PLAN, plan) <= first_difference(PLAN, plan, CACHES, other) < PLAN.steps
