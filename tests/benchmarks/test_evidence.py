"""What the pilot of the evidence benchmark states beforehand."""

import numpy as np

from benchmarks.evidence_power import Size, foretold

SIZE = Size(sets=20, seeds=6, pool=40)


def test_pilot_states_few_finds_where_nothing_differs_and_many_where_much_does():
    noise = np.random.default_rng(1).normal(0, 1, (30, 1))
    nothing, much = (foretold(noise + shift, SIZE, series=60) for shift in (0.0, 4.0))
    assert nothing.power < 0.1 and nothing.fewest == 0 and nothing.most <= 6
    assert much.power > 0.9 and much.fewest >= 10 and much.most == 20


def test_fewer_pilot_seeds_leave_more_open():
    differences = np.random.default_rng(1).normal(1.5, 1, (60, 1))
    few, many = (foretold(some, SIZE, series=60) for some in (differences[:6], differences))
    assert few.most - few.fewest > many.most - many.fewest


def test_sets_are_fixed_and_hold_each_seed_once():
    drawn = Size().drawn
    assert drawn.shape == (20, 12) and (drawn == Size().drawn).all()
    assert all(len(set(row)) == 12 for row in drawn.tolist()) and drawn.max() < 60
