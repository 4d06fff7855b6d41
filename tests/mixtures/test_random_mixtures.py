"""Random mixtures of the sizes that real runs have: nothing is read, the arithmetic is checked at random places."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError
from mixtures import AtMost, Blend, ByTokens, Cache, Chunks, Mixture, Patched, Phase, Plan, UniMax
from mixtures.schedule import DRIFT

LENGTH = 4096


@dataclass(frozen=True)
class SizedCache:
    """A cache of which nothing but its size matters."""

    name: str
    tokens: int
    tokenizer: str = "t"
    documents: int = 1
    vocabulary: int = 100
    eos: int | None = None

    @property
    def digest(self):
        return blake3(f"{self.name} {self.tokens}".encode()).hexdigest()

    def read(self, start, stop):
        raise AssertionError("compiling reads no tokens")

    borders = read
    read_many = read_untrained = read

    def text_digests(self):
        return np.zeros((0, 16), np.uint8)


def number(seed, *parts):
    """A number below 2^32 that depends on its arguments."""
    return int.from_bytes(blake3(repr((seed, *parts)).encode()).digest(4))


def random_mixture(seed, components, phases, sequences, batch, skew, repeats, rare="round up"):
    caches = {}
    for at in range(components):
        name = f"cell{at:04}"
        caches[name] = SizedCache(name, 1 + int(sequences * LENGTH * (number(seed, at) / 2**32) ** skew / 20))
    made = [
        Phase(
            f"p{phase}",
            max(1, sequences // (phase + 1)) * LENGTH,
            {
                name: f"{1 + int(10**9 * (number(seed, phase, name) / 2**32) ** skew)}e-9"
                if number(name, phase) % 9
                else 0
                for name in caches
            },
        )
        for phase in range(phases)
    ]
    return Mixture(None, *made, sequences=Chunks(LENGTH), rare=rare, repeats=repeats, batch=batch, seed=seed), caches


def check_at_random_places(plan, seed):
    length = len(plan)
    places = sorted({0, length - 1, *(number(seed, "place", at) * length >> 32 for at in range(30))})
    draws = plan.draw(places)
    for at, place in enumerate(places):
        one = plan.draw([place])
        name = plan.components[int(one.components[0])].name
        found = int(one.components[0]), int(one.epochs[0]), int(one.chunks[0])
        assert found == tuple(int(column[at]) for column in draws)
        assert plan.index(name, found[1], found[2]) == place


def check_counts(plan):
    before = dict.fromkeys(plan.draws(), 0)
    for segment, stop in zip(plan.segments, plan.starts[1:], strict=True):
        after = plan.draws(stop)
        drawn = {name: after[name] - before[name] for name in after}
        assert sum(drawn.values()) == segment.drawn_length
        for name, count in drawn.items():
            ideal = Fraction(segment.counts.get(name, 0) * segment.drawn_length, segment.quota_length)
            assert abs(count - ideal) < Fraction(str(DRIFT))
            assert segment.drawn_length < segment.quota_length or count == segment.counts.get(name, 0)
        before = after


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 40, 300]),
    st.integers(1, 3),
    st.sampled_from([2000, 10**6, 10**12]),
    st.sampled_from([1, 8, 1024]),
    st.sampled_from([1, 4, 12]),
    st.sampled_from([None, AtMost(4), AtMost(60), AtMost(30, then="stop")]),
    st.sampled_from(["round up", "merge:tail"]),
)
def test_random_mixture_is_exact_or_refused(seed, components, phases, sequences, batch, skew, repeats, rare):
    mixture, caches = random_mixture(seed, components, phases, sequences, batch, skew, repeats, rare)
    assert all(isinstance(cache, Cache) for cache in caches.values())
    try:
        plan = mixture.compile(caches)
    except ConfigurationError as error:
        assert any(word in str(error) for word in ("short", "exceeds", "draws nothing"))
        return
    check_counts(plan)
    check_at_random_places(plan, seed)
    if repeats is not None:
        for component in plan.components:
            assert plan.draws()[component.name] <= repeats.draws(component.sequences)
    step = 1 + number(seed, "cut") * (plan.steps - 1) // 2**32
    cut = plan.truncate(step)
    check_counts(cut)
    again = Plan(**{name: getattr(cut, name) for name, field in Plan.__dataclass_fields__.items() if field.init})
    assert again.digest == cut.digest
    places = np.array([number(seed, "cut", at) * len(cut) >> 32 for at in range(30)])
    assert np.array_equal(plan.draw(places), cut.draw(places))


def test_mixture_of_two_thousand_components_and_three_phases_compiles_and_continues():
    mixture, caches = random_mixture(3, 2000, 3, 10**12, 1024, 4, AtMost(60))
    plan = mixture.compile(caches)
    check_counts(plan)
    check_at_random_places(plan, 3)
    caches["new"] = SizedCache("new", 10**15)
    later, _ = random_mixture(3, 2000, 1, 10**9, 1024, 4, None)
    longer = Mixture(
        None,
        Phase("late", 10**9 * LENGTH, later.phases[0].weights, others=1),
        sequences=Chunks(LENGTH),
        repeats=None,
        rare="round up",
        batch=1024,
        seed=3,
    )
    continued = plan.continue_from(plan.steps // 2 + 1, longer, caches)
    check_counts(continued)
    check_at_random_places(continued, 4)
    assert continued.draws()["new"] > 0


@pytest.mark.parametrize(
    ("weights", "components"),
    [
        (UniMax(2), 2000),
        (ByTokens("10/3"), 300),
        (Blend(ByTokens(), UniMax(2), 0.3), 300),
        (Patched(ByTokens(2), {"cell0007": 0.4}), 300),
    ],
    ids=str,
)
def test_weightings_of_many_components_compile_exactly(weights, components):
    _, caches = random_mixture(5, components, 1, 10**9, 1024, 6, None)
    phases = [Phase(f"p{at}", 10**9 * LENGTH // (at + 1), weights, minimum={"cell0009": "1/100"}) for at in range(3)]
    plan = Mixture(None, *phases, sequences=Chunks(LENGTH), rare="merge:tail", repeats=None, batch=1024).compile(caches)
    check_counts(plan)
    check_at_random_places(plan, 5)
    for segment in plan.segments:
        total = sum(segment.weights.values())
        shares = {name: Fraction(weight * segment.quota_length, total) for name, weight in segment.weights.items()}
        assert all(abs(segment.counts.get(name, 0) - share) < 1 for name, share in shares.items())
        assert segment.counts["cell0009"] * 100 >= segment.quota_length - 100


def test_mixture_too_long_for_its_arithmetic_is_refused():
    caches = {"web": SizedCache("web", LENGTH << 20)}
    mixture = Mixture(None, Phase("main", LENGTH << 51, {"web": 1}), sequences=Chunks(LENGTH), repeats=None)
    with pytest.raises(ValueError, match="at most 2\\^50"):
        mixture.compile(caches)
