from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from tests.trainers.synthetic import tiny
from trainers.reduction import over_shards


def sums(reduction, rows):
    """The sum over eight shards of a row each, times two."""
    config = replace(tiny(), batch=8, shards=8, reduction=reduction)
    return np.asarray(over_shards(lambda factor, shard: jnp.sum(shard, axis=0) * factor, config, None)(2.0, rows))


def test_strict_sum_is_a_tree_of_neighbours_and_the_fast_one_runs_along():
    rows = np.random.Generator(np.random.Philox(3)).standard_normal((8, 500)).astype(np.float32) * 2
    pairs = (rows[0::2] + rows[1::2]) * 2
    quarters = pairs[0::2] + pairs[1::2]
    tree, line = quarters[0] + quarters[1], np.zeros(500, np.float32)
    for row in rows:
        line += row * 2
    np.testing.assert_array_equal(sums("strict", jnp.asarray(rows)), tree)
    np.testing.assert_array_equal(sums("psum", jnp.asarray(rows)), line)
    assert (tree != line).any()


@pytest.mark.parametrize(
    ("reduction", "expected"), [("strict", (0 + 4) * 100 + 3 + 7), ("psum", (0 + 1) * 100 + 6 + 7)]
)
def test_strict_shards_are_consecutive_rows_and_others_are_spread_over_the_batch(reduction, expected):
    config = replace(tiny(), batch=8, shards=2, reduction=reduction)
    total = over_shards(lambda _, shard: shard[0] * 100 + shard[-1], config, None)(None, jnp.arange(8.0))
    assert float(total) == expected
