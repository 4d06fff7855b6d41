from dataclasses import replace

import jax
import numpy as np

from tests.trainers.synthetic import MODEL
from trainers.config import ExpertsConfig
from trainers.model import init_model
from trainers.speed import flop_per_token, measure_peak


def test_operations_of_a_token_are_six_per_weight_it_meets_and_those_of_attention():
    model = jax.eval_shape(lambda: init_model(MODEL, 0))
    matrices = [*jax.tree.leaves(model.blocks.attention), *jax.tree.leaves(model.blocks.feed_forward)]
    weights = sum(int(np.prod(a.shape)) for a in matrices) + MODEL.vocabulary * MODEL.width
    assert flop_per_token(MODEL, 16) == 6 * weights + 6 * MODEL.layers * MODEL.width * 16
    two_of_four = replace(MODEL, experts=ExpertsConfig(count=4, chosen=2))
    more = flop_per_token(two_of_four, 16) - flop_per_token(MODEL, 16)
    assert more == 6 * MODEL.layers * MODEL.width * (3 * MODEL.hidden + 4)  # one more expert, and the router


def test_peak_of_the_hardware_is_measured_and_says_so():
    peak = measure_peak(seconds=0.01)
    assert peak.basis == "measured"
    assert peak.flops > 1e8
