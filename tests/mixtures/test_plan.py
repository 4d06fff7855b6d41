import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.digests import digest_json
from mixtures import Chunks, Mixture, Phase, Plan, PlanError
from mixtures.differences import differences
from tests.mixtures.memory import caches_of, make_cache

CACHES = caches_of(web=[40] * 30, code=[7, 0, 93, 300, 55], law=[333])


def make_plan(seed=7, **weights):
    phases = Phase("main", 16 * 300, weights or {"web": 3, "code": 1}, others=1), Phase("end", 16 * 80, {}, others=1)
    return Mixture(None, *phases, sequences=Chunks(16), repeats=None, batch=8, seed=seed).compile(
        CACHES, {"held": make_cache("held", [99])}
    )


PLAN = make_plan()


def test_plan_saved_and_loaded_is_the_same(tmp_path):
    path = tmp_path / "plan.json"
    PLAN.save(path)
    PLAN.save(path)
    loaded = Plan.load(path, PLAN.digest)
    assert loaded == PLAN
    assert np.array_equal(loaded.draw(range(len(PLAN))), PLAN.draw(range(len(PLAN))))
    text = path.read_text("utf-8")
    assert text.endswith("}\n") and text.count("\n") == 1 and ": " not in text
    assert [file.name for file in tmp_path.iterdir()] == ["plan.json"]


def test_plan_is_not_overwritten_by_another(tmp_path):
    PLAN.save(tmp_path / "plan.json")
    with pytest.raises(PlanError, match="holds another plan"):
        make_plan(seed=8).save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == PLAN


def test_plan_golden_digest_stays():
    assert PLAN.digest == "35185fb482bb2c4f75c460bc443ebc56d30ca748d2d64b44e1ecef8e61158c06"


def test_plan_with_another_digest_than_asked_is_refused(tmp_path):
    PLAN.save(tmp_path / "plan.json")
    with pytest.raises(PlanError, match=f"digest: {PLAN.digest} ≠ 0000"):
        Plan.load(tmp_path / "plan.json", "0000")


def edited(change, keep_digest=False):
    value = json.loads(json.dumps(PLAN.to_json()))
    change(value)
    return json.dumps({**value, "digest": PLAN.digest if keep_digest else digest_json(value)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(format=2), "has format 2, this version of curate reads format 1: load it with"),
        (lambda v: v.update(kind="dataset"), "kind: 'dataset' ≠ 'mixture plan'"),
        (lambda v: v.pop("seed"), "seed"),
        (lambda v: v.update(seed="7"), "seed must be an integer"),
        (lambda v: v.update(batch=0), "batch must be at least 1"),
        (lambda v: v.update(padding=1000), "padding must be below the vocabulary"),
        (lambda v: v.update(components=[]), "components are empty"),
        (lambda v: v.update(segments=[]), "segments are empty"),
        (lambda v: v.update(segments=3), "not a plan that this version can read"),
        (lambda v: v["components"].append(v["components"][0]), "have a name twice"),
        (lambda v: v["components"][0].update(extra=1), "extra"),
        (lambda v: v["components"][0].update(sequences=3), r"components\.code\.sequences cannot be 3 for 455 tokens"),
        (lambda v: v["segments"][1]["counts"].update(web=1), r"segments\[1\]\.counts must add up to 80"),
        (lambda v: v["segments"][1]["counts"].update(wbe=1), r"segments\[1\]\.counts name unknown"),
        (lambda v: v["segments"][1].update(drawn_length=12), r"segments\[1\]\.drawn_length must be whole batches"),
        (lambda v: v["sequences"].update(kind="parcelled"), "kind 'parcelled'"),
    ],
)
def test_plan_that_does_not_hold_together_is_refused_with_the_field(change, message):
    with pytest.raises(PlanError, match=message):
        Plan.from_json(edited(change))


def test_plan_edited_or_damaged_is_refused():
    for text in ("", "[]", "{}", "{", '{"kind": 1.5}'):
        with pytest.raises(PlanError, match="not a plan"):
            Plan.from_json(text)
    with pytest.raises(PlanError, match="damaged or edited plan, digest"):
        Plan.from_json(edited(lambda value: value.update(seed=8), keep_digest=True))


def test_plan_and_caches_that_do_not_fit_are_refused_with_all_fields():
    PLAN.check_caches(CACHES)
    other = make_cache("web", [41] * 30, tokenizer="b" * 64)
    caches = {"web": other, "code": CACHES["code"]}
    with pytest.raises(PlanError) as error:
        PLAN.check_caches(caches)
    for part in ("law: missing", "web.cache:", "web.tokenizer:", "web.tokens: 1200 ≠ 1230"):
        assert part in str(error.value)
    assert "code" not in str(error.value)


def test_plan_file_with_a_flipped_byte_is_refused_by_its_path(tmp_path):
    path = tmp_path / "plan.json"
    PLAN.save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole) - 1, 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x81]) + whole[at + 1 :])
        with pytest.raises(PlanError, match=r"plan\.json: "):
            Plan.load(path)


def test_plan_diff_names_fields():
    assert PLAN.diff(PLAN) == ()
    fields = [difference.field for difference in PLAN.diff(make_plan(seed=8, web=5))]
    assert fields[0] == "seed"
    assert "segments[0].counts.web" in fields and "segments[0].weights.web" in fields
    assert not any(field.startswith(("segments[1]", "components")) for field in fields)


def test_differences_of_lists_go_by_name_or_by_place():
    ours = {"a": [{"name": "x", "n": 1}], "b": [1, 2]}
    theirs = {"a": [{"name": "y", "n": 1}, {"name": "x", "n": 2}], "b": [1]}
    assert [str(d) for d in differences(ours, theirs)] == [
        "a.x.n: 1 ≠ 2",
        "a.y: nothing ≠ {'name': 'y', 'n': 1}",
        "b[1]: 2 ≠ nothing",
    ]


@settings(max_examples=60)
@given(st.lists(st.integers(0, len(PLAN) - 1), max_size=50))
def test_plan_draws_any_sequences_in_any_order_as_one_by_one(sequences):
    whole = PLAN.draw(np.arange(len(PLAN)))
    some = PLAN.draw(sequences)
    for part, all_of in zip(some, whole, strict=True):
        assert np.array_equal(part, all_of[np.array(sequences, int)])
    for sequence in sequences[:3]:
        assert PLAN.component_of(sequence) == PLAN.components[whole.components[sequence]]


def test_plan_finds_where_a_chunk_is_read():
    draws = PLAN.draw(np.arange(len(PLAN)))
    for sequence in range(0, len(PLAN), 7):
        name = PLAN.components[draws.components[sequence]].name
        assert PLAN.index(name, int(draws.epochs[sequence]), int(draws.chunks[sequence])) == sequence
    assert PLAN.index("web", 100, 3) is None
    cut = PLAN.truncate(10)
    assert all((cut.index("web", 0, chunk) is None) or cut.index("web", 0, chunk) < 80 for chunk in range(75))
    with pytest.raises(KeyError, match="no component 'wbe'; there are code, law, web"):
        PLAN.index("wbe", 0, 0)


def test_plan_counts_draws_and_tokens_before_any_step():
    draws = PLAN.draw(np.arange(len(PLAN)))
    for step in (0, 1, 17, 38, PLAN.steps):
        counts, tokens = PLAN.draws(step), PLAN.tokens_read(step)
        for index, component in enumerate(PLAN.components):
            chunks = draws.chunks[: step * 8][draws.components[: step * 8] == index].tolist()
            assert counts[component.name] == len(chunks)
            spans = [PLAN.sequences.span(chunk, component.tokens) for chunk in chunks]
            assert tokens[component.name] == sum(stop - start for start, stop in spans)


def test_plan_outside_its_range_is_refused():
    for call in (
        lambda: PLAN.draw([len(PLAN)]),
        lambda: PLAN.draw([3, -1]),
        lambda: PLAN.component_of(-1),
        lambda: PLAN.phase_of(PLAN.steps),
    ):
        with pytest.raises(IndexError, match=r"is not in range|has steps 0 to "):
            call()


def test_plan_prints_phases_shares_and_epochs():
    text = str(PLAN)
    assert PLAN.digest[:16] in text
    assert "48 steps of 8 × 16 tokens" in text
    assert "main: steps 0 to 37 (38; 4.80 k tokens asked, 4.86 k drawn)" in text
    assert "60.00% → 59.87%" in text
    assert "cut from 38" in str(PLAN.truncate(10))


def test_plan_with_many_components_prints_the_largest():
    caches = {f"c{i:03}": make_cache(f"c{i:03}", [50]) for i in range(60)}
    plan = Mixture(None, Phase("main", 160 * 60, {}, others=1), sequences=Chunks(16), batch=8).compile(caches)
    assert "… and 20 more" in str(plan)
