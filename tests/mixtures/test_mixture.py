import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate import deduplicate, read_jsonl, tokenize, train_tokenizer
from curate.configuration import ConfigurationError
from curate.store import json_line, self_digested
from mixtures import (
    AtMost,
    Blend,
    ByColumn,
    ByTag,
    Chunks,
    FillInTheMiddle,
    FromTable,
    Mixture,
    Patched,
    Phase,
    Plan,
    PlanError,
)
from tests.mixtures.memory import caches_of, digests, make_cache

CACHES = caches_of(web=[40] * 30, code=[7, 0, 93, 300, 55], law=[333])


def mixture(*phases, **settings):
    given = {"sequences": Chunks(16), "batch": 8, **settings}
    return Mixture(None, *(phases or (Phase("main", 16 * 400, {"web": 3, "code": 1}, others=1),)), **given)


def test_mixture_draws_what_is_asked_exactly():
    plan = mixture(Phase("main", 16 * 400, {"web": 3, "code": 1}, others=0), repeats=None).compile(CACHES)
    assert len(plan) == 400
    assert plan.steps == 50
    assert plan.draws() == {"code": 100, "law": 0, "web": 300}
    components = plan.draw(np.arange(400)).components
    assert np.bincount(components, minlength=3).tolist() == [100, 0, 300]


def test_mixture_rounds_phases_up_to_whole_batches():
    plan = mixture(Phase("a", 16 * 9, {}, others=1), Phase("b", 1, {"web": 1}, others=0)).compile(CACHES)
    assert [segment.drawn_length for segment in plan.segments] == [16, 8]
    assert plan.starts == (0, 2, 3)
    assert [plan.phase_of(step) for step in range(3)] == ["a", "a", "b"]


def test_mixture_takes_every_sequence_of_a_pass_once():
    plan = mixture(Phase("main", 16 * 400, {}, others=1), repeats=None).compile(CACHES)
    draws = plan.draw(np.arange(len(plan)))
    for index, component in enumerate(plan.components):
        mine = draws.components == index
        for epoch in range(int(draws.epochs[mine].max())):
            chunks = draws.chunks[mine & (draws.epochs == epoch)]
            assert sorted(chunks.tolist()) == list(range(component.sequences)), (component.name, epoch)


def test_mixture_caps_repeats_over_all_phases():
    plan = mixture(
        Phase("main", 16 * 120, {"law": 1, "web": 1}, others=0),
        Phase("cooldown", 16 * 56, {"law": 1}, others=1),
        repeats=AtMost(2),
    ).compile(CACHES)
    assert plan.draws()["law"] == 2 * 21
    assert min(segment.counts["law"] for segment in plan.segments) > 0
    assert plan.draw(np.arange(len(plan))).epochs.max() < 2


def test_mixture_that_stops_ends_with_the_last_batch_within_the_cap():
    asked = mixture(Phase("main", 16 * 4000, {}, others=1), repeats=AtMost(1.5, then="stop"))
    plan, whole = asked.compile(CACHES), mixture(Phase("main", 16 * 4000, {}, others=1), repeats=None).compile(CACHES)
    cap = int(Fraction(3, 2) * 21)
    assert plan.draws()["law"] <= cap < whole.draws(plan.steps + 1)["law"]
    assert np.array_equal(plan.draw(np.arange(len(plan))), whole.draw(np.arange(len(plan))))
    assert (plan.segments[0].quota_length, plan.earlier) == (4000, ())
    with pytest.raises(ConfigurationError, match="step 0 already exceeds"):
        mixture(Phase("main", 16 * 400, {"law": 1}, others=0), repeats=AtMost("1/21", then="stop")).compile(CACHES)


@pytest.mark.parametrize(
    ("phases", "settings", "message"),
    [
        (
            [Phase("main", 1600, {"wbe": 1}, others=0)],
            {},
            r"weights 'wbe', but the components are 'code', 'l",
        ),
        ([Phase("main", 1600, {"web": 1})], {}, r"says nothing about 'code', 'law': give weights, or others=0"),
        ([Phase("main", 1600, {"web": 0}, others=0)], {}, "draws nothing"),
        ([Phase("main", 1600, {"web": 1e6, "law": 1}, others=0)], {}, r"never draw law"),
        ([Phase("main", 10**6, {"web": 1}, others=0)], {"repeats": AtMost(2)}, "short"),
    ],
)
def test_mixture_that_cannot_be_realised_is_refused_when_compiling(phases, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        mixture(*phases, **settings).compile(CACHES)


def test_mixture_with_wrong_arguments_is_refused_when_written():
    for call in (
        lambda: Mixture(None),
        lambda: mixture(Phase("a", 1, {}, others=1), Phase("a", 1, {}, others=1)),
        lambda: mixture(rare="merge"),
        lambda: mixture(batch=0),
        lambda: mixture(seed=1.5),
        lambda: Phase("", 1, {}),
        lambda: Phase("a", 0.5, {}),
        lambda: Phase("a", 1, {"web": -1}),
        lambda: Phase("a", 1, {"web": float("nan")}),
        lambda: Phase("a", 1, {}, others=-1),
        lambda: Chunks(1),
    ):
        with pytest.raises(ConfigurationError):
            call()


def test_caches_that_do_not_go_together_are_refused():
    mixed = mixture(Phase("main", 1600, {}, others=1)).compile
    with pytest.raises(ConfigurationError, match="at least one component"):
        mixed({})
    with pytest.raises(ConfigurationError, match="without a token: nothing"):
        mixed({**CACHES, "nothing": make_cache("nothing", [])})
    for field, value in (("tokenizer", "b" * 64), ("vocabulary", 2000), ("eos", None)):
        with pytest.raises(ConfigurationError, match=f"share their {field}: 'code' has .*, 'web' has "):
            mixed({**CACHES, "web": replace(CACHES["web"], **{field: value})})
    with pytest.raises(ConfigurationError, match=r"share their tokenizer: 'code' has a+, 'validation web' has b+"):
        mixed(CACHES, {"web": make_cache("v", [9], tokenizer="b" * 64)})


def test_validation_that_shares_a_text_with_training_is_refused():
    mixed = mixture(Phase("main", 1600, {}, others=1)).compile
    held = make_cache("held", [50, 60])
    assert mixed(CACHES, {"web": held}).validation[0].cache == held.digest
    leaked = replace(held, texts=np.concatenate([held.texts, CACHES["web"].texts[17:18]]))
    with pytest.raises(
        ConfigurationError,
        match=f"'web' shares 1 texts with the validation cache 'web', as {CACHES['web'].texts[17].tobytes().hex()}",
    ):
        mixed(CACHES, {"web": leaked})
    half = CACHES["web"].texts[17].tobytes()[:8] + bytes(8)
    mixed(CACHES, {"web": replace(held, texts=digests([half]))})


def test_plan_does_not_depend_on_the_order_of_caches_and_weights():
    left = mixture(Phase("main", 3200, {"web": 3, "code": 1, "law": 2})).compile(CACHES)
    right = mixture(Phase("main", 3200, {"law": 20, "web": 30, "code": 10})).compile(dict(reversed(CACHES.items())))
    assert left == right
    assert left.digest == right.digest


def sequences_of(plan, name):
    """(epoch, chunk) of the component's draws, in order."""
    draws = plan.draw(np.arange(len(plan)))
    mine = draws.components == plan.component_index(name)
    return list(zip(draws.epochs[mine].tolist(), draws.chunks[mine].tolist(), strict=True))


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(0, 9), st.integers(0, 9), st.sampled_from(["add", "remove", "zero", "weights"]))
def test_sequences_of_a_component_do_not_depend_on_the_others(web, code, law, change):
    weights = {"web": web, "code": code, "law": law}
    caches = dict(CACHES)
    before = mixture(Phase("main", 16 * 240, weights), repeats=None, rare="round up").compile(caches)
    if change == "add":
        caches["aaa"] = make_cache("aaa", [500, 500])
        weights["aaa"] = 4
    elif change == "remove":
        del caches["law"], weights["law"]
    elif change == "zero":
        weights["code"] = 0
    else:
        weights = {"web": web + code, "code": 1, "law": 5}
    after = mixture(Phase("main", 16 * 320, weights), repeats=None, rare="round up").compile(caches)
    for name in set(caches) & set(CACHES):
        ours, theirs = sequences_of(before, name), sequences_of(after, name)
        shorter = min(len(ours), len(theirs))
        assert ours[:shorter] == theirs[:shorter], name


def test_continued_plan_keeps_the_past_bit_for_bit():
    first = mixture(Phase("main", 16 * 400, {}, others=1), Phase("cooldown", 16 * 80, {"web": 1}, others=0)).compile(
        CACHES
    )
    caches = {**CACHES, "aaa": make_cache("aaa", [5000]), "zzz": make_cache("zzz", [2000])}
    del caches["law"]
    after = mixture(Phase("late", 16 * 160, {"zzz": 3}, others=1), repeats=None)
    plan = first.continue_from(31, after, caches)
    past = np.arange(31 * 8)
    assert np.array_equal(plan.draw(past), first.draw(past))
    assert [component.name for component in plan.components] == ["code", "law", "web", "aaa", "zzz"]
    assert [(s.phase, s.quota_length, s.drawn_length) for s in plan.segments] == [
        ("main", 400, 248),
        ("late", 160, 160),
    ]
    assert plan.agrees_with(first.digest, 31)
    assert not plan.agrees_with(first.digest, 32)
    assert plan.agrees_with(plan.digest, 10**9)
    assert not plan.agrees_with("0" * 64, 0)
    again = plan.continue_from(20, after, caches)
    assert again.agrees_with(first.digest, 20) and again.agrees_with(plan.digest, 20)
    assert not again.agrees_with(first.digest, 21)
    assert Plan.from_json(json_line(self_digested(plan.to_json())).decode()) == plan


def test_continued_plan_goes_on_with_the_next_sequence_of_each_component():
    ask = Phase("main", 16 * 400, {"web": 2}, others=1)
    whole = mixture(ask, repeats=None).compile(CACHES)
    part = whole.continue_from(13, mixture(Phase("other", 16 * 240, {"web": 1}, others=4), repeats=None), CACHES)
    for name in CACHES:
        ours, theirs = sequences_of(whole, name), sequences_of(part, name)
        assert ours[: len(theirs)] == theirs[: len(ours)]


def test_continued_plan_counts_earlier_draws_towards_caps():
    first = mixture(Phase("main", 16 * 160, {}, others=1), repeats=AtMost(4)).compile(CACHES)
    plan = first.continue_from(20, mixture(Phase("late", 16 * 200, {}, others=1), repeats=AtMost(4)), CACHES)
    assert plan.draws()["law"] == 4 * 21
    stopping = mixture(Phase("late", 16 * 200, {"law": 1}, others=0), repeats=AtMost(4, then="stop"))
    stopped = first.continue_from(20, stopping, CACHES)
    assert first.draws()["law"] < stopped.draws()["law"] <= 4 * 21
    with pytest.raises(ConfigurationError, match="step 20 already exceeds"):
        first.continue_from(20, replace_repeats(stopping, AtMost(1, then="stop")), CACHES)


def replace_repeats(mixture, repeats):
    return Mixture(
        mixture.cells,
        *mixture.phases,
        sequences=mixture.sequences,
        repeats=repeats,
        batch=mixture.batch,
        seed=mixture.seed,
    )


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"seed": 8}, "seed: 7 ≠ 8"),
        ({"batch": 16}, "batch: 8 ≠ 16"),
        ({"sequences": Chunks(32)}, "sequences.length: 16 ≠ 32"),
    ],
)
def test_continued_plan_with_another_setting_is_refused_with_the_field(settings, field):
    plan = mixture().compile(CACHES)
    with pytest.raises(PlanError, match=field):
        plan.continue_from(9, mixture(**settings), CACHES)


def test_continued_plan_with_another_cache_or_validation_is_refused_with_the_field():
    plan = mixture().compile(CACHES)
    with pytest.raises(PlanError, match=r"components\.web\.cache: '\w+' ≠ '\w+'"):
        plan.continue_from(9, mixture(), {**CACHES, "web": make_cache("web", [41] * 30)})
    with pytest.raises(PlanError, match=r"tokenizer: 'a+' ≠ 'b+'"):
        others = {name: replace(cache, tokenizer="b" * 64) for name, cache in CACHES.items()}
        plan.continue_from(9, mixture(), others)
    with pytest.raises(PlanError, match=r"validation\.held: nothing ≠ "):
        plan.continue_from(9, mixture(), CACHES, {"held": make_cache("held", [50])})
    for step in (0, plan.steps + 1):
        with pytest.raises(IndexError, match="can be cut after 1 to"):
            plan.continue_from(step, mixture(), CACHES)


def test_mixture_prints_as_it_was_written():
    text = str(mixture(Phase("main", 8e6, {"web": 3, "code": 0.5}, others=0)))
    assert "main: 8,000,000 tokens of web 3, code 0.5, others 0" in text


def test_mixture_that_names_what_its_cells_cannot_have_is_refused_before_anything_runs(tmp_path):
    texts = deduplicate(*(read_jsonl(tmp_path, source=source) for source in ("web", "code")))
    table = tmp_path / "weights.csv"
    table.write_text("component,weight\nweb,1\ncoed,2\n")
    tokenizer = train_tokenizer(texts, 300)
    by_source, whole = tokenize(texts, tokenizer, by="source"), tokenize(texts, tokenizer)
    pairs = tokenize(texts, tokenizer, by=("source", "language"))
    for cells, weights, says in (
        (by_source, {"web": 1, "coed": 2}, "phase 'main' weights 'coed', but the components are 'web', 'code'"),
        (whole, {"web": 1}, "phase 'main' weights 'web', but the components are 'all'"),
        (by_source, FromTable(table), "weights 'coed'"),
        (by_source, FromTable(tmp_path / "none.csv"), "none.csv: a CSV or Parquet file"),
        (by_source, Blend({"web": 1}, Patched({"code": 1}, {"coed": "1/2"}), "1/2"), "weights 'coed'"),
        (by_source, ByTag({"text": ("wbe",)}, {"text": 1}, others=0), "weights 'wbe'"),
        (by_source, ByColumn(source={"coed": 2}), "weights source='coed', but the sources are 'web', 'code'"),
        (pairs, ByColumn(sourec={"web": 2}), "weights by 'sourec', but cells are made by 'source', 'language'"),
    ):
        with pytest.raises(ConfigurationError, match=re.escape(says)):
            Mixture(cells, Phase("main", 8000, weights))
    with pytest.raises(ConfigurationError, match="'coed'"):
        Mixture(by_source, Phase("main", 8000, {"web": 1}, others=0, minimum={"coed": "1/9"}))
    with pytest.raises(ConfigurationError, match="views rearrange 'coed'"):
        Mixture(by_source, Phase("main", 8000, {"web": 1}, others=0), views={"coed": FillInTheMiddle(1, 2, 3, 1)})
    by_language = tokenize(texts, tokenizer, by="language")  # which there are, texts will tell
    assert Mixture(by_language, Phase("main", 8000, {"nn": 1})).phases
    assert Mixture(by_source, Phase("main", 8000, {"web": 1, "code": 1})).phases
