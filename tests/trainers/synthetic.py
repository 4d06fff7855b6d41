"""What the tests of the trainer share: a tiny configuration and a source that can be learnt in a few steps."""

import numpy as np

from trainers.batches import Sequences
from trainers.config import Config, ModelConfig, OptimizerConfig

VOCABULARY = 32
SHAPE = (4, 16)
MODEL = ModelConfig(vocabulary=VOCABULARY, width=16, layers=2, heads=4, kv_heads=2, hidden=24)


def tiny(steps=12, seed=0):
    optimizer = OptimizerConfig(learning_rate=0.02, warmup=2, decay=4)
    return Config(MODEL, optimizer, steps=steps, batch=SHAPE[0], length=SHAPE[1], seed=seed)


def markov(rng, shape, jumps=0.1, salt=5):
    """Return tokens that mostly follow x → salt · x + 3, and jump to a random token now and then."""
    tokens = np.empty(shape, np.int32)
    tokens[:, 0] = rng.integers(0, VOCABULARY, shape[0])
    for place in range(1, shape[1]):
        follows = (salt * tokens[:, place - 1] + 3) % VOCABULARY
        tokens[:, place] = np.where(rng.random(shape[0]) < jumps, rng.integers(0, VOCABULARY, shape[0]), follows)
    return tokens


def sequences(tokens, cut=None):
    """Return `tokens` as a batch of one document a row, or of two that meet at `cut`."""
    place = np.arange(tokens.shape[1])
    cut = tokens.shape[1] if cut is None else cut
    segments = np.broadcast_to(1 + (place >= cut), tokens.shape).astype(np.int32)
    positions = np.broadcast_to(np.where(place >= cut, place - cut, place), tokens.shape).astype(np.int32)
    return Sequences(tokens, segments, positions, np.ones(tokens.shape, np.bool_))


class MarkovLoader:
    """Batches of the source; `digest` names them."""

    def __init__(self, seed=0, jumps=0.1, salt=5):
        self.seed, self.jumps, self.salt = seed, jumps, salt
        self.digest = f"markov {seed} {jumps} {salt}"

    def batch(self, step):
        rng = np.random.Generator(np.random.Philox(key=[self.seed, step]))
        return sequences(markov(rng, SHAPE, self.jumps, self.salt), cut=10)


def held_out(count=4, salt=5):
    return [MarkovLoader(999, salt=salt).batch(step) for step in range(count)]
