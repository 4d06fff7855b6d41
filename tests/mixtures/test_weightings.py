"""Weights from sizes, tables and other weights: exact, and refused before anything runs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import ConfigurationError, describe
from curate.store import json_line
from mixtures import (
    AtMost,
    Blend,
    ByTag,
    ByTokens,
    Chunks,
    FromTable,
    Loader,
    Mixture,
    Patched,
    Phase,
    Plan,
    PlanError,
    UniMax,
)
from tests.mixtures.memory import caches_of

SIZES = {"web": 8000, "code": 1000, "math": 125}


def weights(weighting: Any, length: int = 900) -> dict[str, Fraction]:
    return weighting.weights_of(SIZES, "main", length)


def mixture(*phases: Phase, **settings: Any) -> Mixture:
    return Mixture(None, *phases, **{"sequences": Chunks(16), "batch": 8, "repeats": None, **settings})


def test_weights_by_tokens_are_sizes_and_roots_of_them() -> None:
    assert weights(ByTokens()) == SIZES
    assert weights(ByTokens(3)) == {"web": 20, "code": 10, "math": 5}
    assert weights(ByTokens("3/2"))["code"] == 100
    assert weights(ByTokens(2))["web"] == Fraction("89.4427190999916")


def test_unimax_is_even_as_far_as_the_passes_reach() -> None:
    assert weights(UniMax(1), 300) == {"web": 100, "code": 100, "math": 100}
    assert weights(UniMax(2), 4250) == {"web": 2000, "code": 2000, "math": 250}
    assert weights(UniMax("1/2"), 4500) == {"web": 4000 - Fraction(125, 2), "code": 500, "math": Fraction(125, 2)}
    with pytest.raises(ConfigurationError, match="4 passes over all components are 36,500 tokens"):
        weights(UniMax(4), 40_000)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40), st.integers(1, 5), st.integers(1, 100))
def test_unimax_gives_everything_out_and_never_more_than_its_passes(sizes: list[int], epochs: int, part: int) -> None:
    tokens = {f"c{at:02}": size for at, size in enumerate(sizes)}
    length = max(1, sum(sizes) * epochs * part // 100)
    given_out = UniMax(epochs).weights_of(tokens, "main", length)
    assert sum(given_out.values()) == length
    free = [share for name, share in given_out.items() if share < epochs * tokens[name]]
    assert all(given_out[name] <= epochs * tokens[name] for name in tokens)
    assert len(set(free)) <= 1
    assert all(share <= free[0] for share in given_out.values()) if free else True


def test_weights_from_a_table_are_those_that_are_written(tmp_path: Path) -> None:
    table = tmp_path / "cells.csv"
    table.write_text("component,weight\nweb,0.1\ncode,3/10\n")
    assert weights(FromTable(table, others=0)) == {"web": Fraction(1, 10), "code": Fraction(3, 10), "math": 0}
    pq.write_table(pa.table({"cell": ["web", "code", "math"], "w": [0.1, 0.3, 2.0]}), tmp_path / "cells.parquet")
    found = weights(FromTable(tmp_path / "cells.parquet", "cell", "w"))
    assert found == {"web": Fraction(1, 10), "code": Fraction(3, 10), "math": 2}
    before = describe(FromTable(table))
    table.write_text("component,weight\nweb,0.2\ncode,3/10\n")
    assert describe(FromTable(table)) != before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("component,weight\nweb,1\nweb,2\n", "row 2: 'web' has a weight already"),
        ("component,weight\nweb,1\nlaw,2\n", "weights 'law'"),
        ("component,weight\nweb,1\n", "says nothing about 'code', 'math'"),
        ("component,weight\nweb,much\n", "row 1: the weight of 'web' must be a number"),
        ("cell,weight\nweb,1\n", "a CSV or Parquet file with the columns"),
    ],
)
def test_tables_that_fit_no_components_are_refused_by_row(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "cells.csv").write_text(content)
    with pytest.raises(ConfigurationError, match=said):
        weights(FromTable(tmp_path / "cells.csv"))


def test_blends_and_patches_are_shares() -> None:
    blend = Blend({"web": 1}, {"web": 1, "code": 1}, "1/2")
    assert weights(blend) == {"web": Fraction(3, 4), "code": Fraction(1, 4), "math": 0}
    patched = Patched(ByTokens(3), {"math": "1/2"})
    assert weights(patched) == {"web": Fraction(1, 3), "code": Fraction(1, 6), "math": Fraction(1, 2)}
    assert str(patched) == "by tokens at temperature 3, but math 1/2"
    for wrong, said in (({"law": 1}, "'law'"), ({"web": 1, "code": 1}, "add up to 2"), ({"web": "x"}, "a number")):
        with pytest.raises(ConfigurationError, match=said):
            weights(Patched(ByTokens(), wrong))
    with pytest.raises(ConfigurationError, match="nothing else is drawn"):
        weights(Patched({"web": 1}, {"web": "1/2"}))


def test_tags_share_their_weight_by_tokens() -> None:
    tagged = ByTag({"text": ("web", "math"), "code": ("code",)}, {"text": 1, "code": 3})
    assert weights(tagged) == {"web": Fraction(64, 65), "code": 3, "math": Fraction(1, 65)}
    assert weights(ByTag({"text": ("web",)}, {"text": 1}, others=9)) == {"web": 1, "code": 8, "math": 1}
    for tags, given_weights, said in (
        ({"a": ("web", "code", "math"), "b": ("web",)}, {"a": 1, "b": 1}, "the tags 'a' and 'b'"),
        ({"a": ("web",)}, {"b": 1}, "'a', 'b' needs components and a weight"),
        ({"a": ("web",)}, {"a": 1}, "says nothing about 'code', 'math'"),
        ({"a": ("web", "law")}, {"a": 1}, "'law'"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            weights(ByTag(tags, given_weights))


def test_simulated_epochs_read_a_share_of_each_component_as_often_as_the_large_run() -> None:
    caches = caches_of(a=[16 * 100 + 5], b=[16 * 400])
    small = Chunks.simulating(16, tokens=16 * 200, target=16 * 2000)
    plan = mixture(Phase("main", 16 * 200, {"a": 1, "b": 1}), sequences=small).compile(caches)
    assert {c.name: c.sequences for c in plan.components} == {"a": 11, "b": 40}
    assert plan.draws() == {"a": 100, "b": 100}
    assert set(plan.draw(range(200)).chunks.tolist()) == set(range(40))
    assert plan.tokens_read() == {"a": 1600, "b": 1600}
    assert Plan.from_json(json_line({**plan.to_json(), "digest": plan.digest}).decode()).digest == plan.digest
    assert "simulated epochs: 1/10 of each component is read" in str(plan)
    loader = Loader(plan, caches)
    assert all(loader.batch(step).loss_mask.any() for step in range(plan.steps))
    whole = mixture(Phase("main", 16 * 200, {"a": 1, "b": 1}), sequences=Chunks(16))
    with pytest.raises(PlanError, match="sequences"):
        plan.continue_from(3, whole, caches)
    for wrong in (0, 2, -1, "x"):
        with pytest.raises(ConfigurationError, match="share"):
            Chunks(16, wrong)


def test_minimum_shares_hold_and_the_others_give_way() -> None:
    phase = Phase("main", 1000, ByTokens(), minimum={"math": "1/10", "code": "1/20"})
    found = phase.weights_of(SIZES)
    assert (found["math"], found["web"] / found["code"]) == (Fraction(1, 10), 8)
    assert Phase("main", 1000, {"web": 8, "code": 1, "math": 0}, minimum={"math": "1/2", "code": "1/4"}).weights_of(
        SIZES
    ) == {"web": Fraction(1, 4), "code": Fraction(1, 4), "math": Fraction(1, 2)}
    assert sum(phase.weights_of(SIZES).values()) == 1
    with pytest.raises(ConfigurationError, match="more than 1"):
        Phase("main", 1000, ByTokens(), minimum={"math": "2/3", "web": "1/2"}).weights_of(SIZES)
    caches = caches_of(a=[160], b=[1600])
    with pytest.raises(ConfigurationError, match="shall draw 'a' at least 20 times, but caps leave 10"):
        mixture(Phase("main", 16 * 40, {"a": 1, "b": 1}, minimum={"a": 0.5}), repeats=AtMost(1)).compile(caches)


@settings(max_examples=60)
@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=30), st.lists(st.integers(0, 30), min_size=2, max_size=30))
def test_minimum_shares_of_any_weights_hold_exactly(sizes: list[int], least: list[int]) -> None:
    tokens = {f"c{at:02}": size for at, size in enumerate(sizes)}
    minimum = {name: Fraction(share, 1000) for name, share in zip(tokens, least, strict=False)}
    shares = Phase("main", 1000, ByTokens(), minimum=minimum).weights_of(tokens)
    assert sum(shares.values()) == 1
    assert all(shares[name] >= share for name, share in minimum.items())
    free = [name for name in tokens if shares[name] > minimum.get(name, 0)]
    assert len({shares[name] / tokens[name] for name in free}) <= 1


def test_tail_of_rare_components_gets_its_share_together() -> None:
    caches = caches_of(**{f"c{at}": [160] for at in range(9)}, web=[16000])
    weights = {**{f"c{at}": 4 + at for at in range(9)}, "web": 1000}
    plan = mixture(Phase("main", 16 * 80, weights), rare="merge:tail").compile(caches)
    drawn = {name: count for name, count in plan.draws().items() if count}
    assert drawn == {"web": 75, "c8": 1, "c7": 1, "c6": 1, "c5": 1, "c4": 1}
    assert plan.undrawn == {"main": ("c0", "c1", "c2", "c3")}
    assert mixture(Phase("main", 16 * 80, weights), rare="round up").compile(caches).undrawn == {}


@settings(max_examples=40)
@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=60), st.integers(1, 20), st.integers(1, 3))
def test_merged_tails_of_any_weights_add_up_and_miss_their_share_by_less_than_one(
    numbers: list[int], batches: int, phases: int
) -> None:
    caches = caches_of(**{f"c{at:02}": [16 * 200] for at in range(len(numbers))})
    made = [Phase(f"p{at}", 16 * 8 * batches, dict(zip(caches, numbers, strict=True))) for at in range(phases)]
    plan = mixture(*made, rare="merge:tail").compile(caches)
    for segment in plan.segments:
        length, total = segment.quota_length, sum(numbers)
        assert sum(segment.counts.values()) == length
        shares = {name: Fraction(length * number, total) for name, number in zip(caches, numbers, strict=True)}
        assert all(abs(segment.counts.get(name, 0) - share) < 2 for name, share in shares.items())
        rare = [name for name in caches if shares[name] < 1]
        assert abs(sum(segment.counts.get(name, 0) - shares[name] for name in rare)) < 1 + (len(rare) > 0)


def test_mixtures_are_patched_interpolated_and_compared() -> None:
    old = mixture(Phase("main", 1600, {"a": 1, "b": 3}), Phase("late", 800, {"a": 1}, others=0))
    new = old.patch("main", {"a": 1, "b": 1})
    assert [str(difference) for difference in old.diff(new)] == ["phases.main.weights.b: 3 ≠ 1"]
    assert old.diff(old) == ()
    between = old.interpolate(new, "1/2")
    assert between.phases[0].weights_of({"a": 1, "b": 1}) == {"a": Fraction(3, 8), "b": Fraction(5, 8)}
    assert between.phases[1].weights_of({"a": 1, "b": 1}) == {"a": 1, "b": 0}
    assert [d.field for d in old.diff(mixture(*old.phases, seed=8))] == ["seed"]
    with pytest.raises(ConfigurationError, match="no phase 'middle'"):
        old.patch("middle", {"a": 1})
    with pytest.raises(ConfigurationError, match="phase by phase"):
        old.interpolate(mixture(Phase("main", 1600, {"a": 1})), 0.5)
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        old.interpolate(new, 2)
