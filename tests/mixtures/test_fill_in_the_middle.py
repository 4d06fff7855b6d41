from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from curate.configuration import ConfigurationError
from mixtures import Chunks, FillInTheMiddle, Loader, Mixture, Packed, Phase, Plan, PlanError, locate
from mixtures.fill_in_the_middle import view_key
from tests.mixtures.memory import make_cache

PREFIX, SUFFIX, MIDDLE = 900, 901, 902
ALWAYS = FillInTheMiddle(PREFIX, SUFFIX, MIDDLE, rate=1)
KEY = view_key(7, "code")


def cache_of(name, lengths):
    """Documents whose last token is 3, the end of documents."""
    made = make_cache(name, lengths)
    ends = np.cumsum(lengths) - 1
    made.stream[:] = 10 + np.arange(len(made.stream)) % 800
    made.stream[ends[np.array(lengths) > 0]] = 3
    return made


def sources(view, ends, ended, epoch=0, chunk=0):
    found, begins = view.sources(np.array(ends), np.array(ended), KEY, epoch, chunk)
    return found.tolist(), begins.tolist()


def parts(row):
    """Prefix, suffix and middle of one rearranged document, in either order of its parts."""
    suffix, middle = row.index(-2), row.index(-3)
    assert row[0] == -1
    if suffix == 1:
        rest = row[middle + 1 :]
        return None, row[2:middle], rest
    return row[1:suffix], row[suffix + 1 : middle], row[middle + 1 :]


@pytest.mark.parametrize("spm", [0, 1])
def test_document_is_prefix_suffix_middle_in_the_order_asked_for(spm):
    view = FillInTheMiddle(PREFIX, SUFFIX, MIDDLE, rate=1, spm=spm)
    for chunk in range(200):
        row, begins = sources(view, [20], [False], chunk=chunk)
        prefix, suffix, rest = parts(row)
        assert begins == [0]
        if prefix is None:  # suffix first, or an empty prefix
            assert rest + suffix == list(range(20))
        else:
            assert not spm and prefix + rest + suffix == list(range(20))


def test_end_of_a_document_stays_last():
    for chunk in range(50):
        row, _ = sources(ALWAYS, [20], [True], chunk=chunk)
        assert row[-1] == 19 and sorted(row) == [-3, -2, -1, *range(20)]


def test_cuts_are_drawn_evenly_and_shares_are_those_asked_for():
    view = FillInTheMiddle(PREFIX, SUFFIX, MIDDLE, rate="1/4", spm="1/3")
    rows = [sources(view, [9], [False], epoch, chunk)[0] for epoch in range(20) for chunk in range(1000)]
    changed = [row for row in rows if row[0] == -1]
    assert abs(len(changed) / len(rows) - 1 / 4) < 5 * (3 / 16 / len(rows)) ** 0.5
    first = [row for row in changed if row[1] == -2]  # suffix first, or an empty prefix
    assert abs(len(first) / len(changed) - (1 / 3 + 2 / 3 * 0.19)) < 0.03
    sizes = np.bincount([len(parts(row)[1]) for row in changed], minlength=10) / len(changed)
    wanted = np.array([(2 * (9 - size) + 1) / 100 for size in range(10)])  # of the last of two even draws from 0..9
    assert np.abs(sizes - wanted).max() < 0.02


def test_document_that_is_left_alone_keeps_its_tokens():
    never = FillInTheMiddle(PREFIX, SUFFIX, MIDDLE, rate=0)
    assert sources(never, [4, 9, 10], [True, False, True]) == (list(range(10)), [0, 4, 9])
    assert sources(ALWAYS, [1], [True]) == ([0], [0])  # nothing but its end


def make_plan(sequences, view=ALWAYS):
    caches = {"code": cache_of("code", [7, 0, 30, 12, 1, 25] * 9), "web": cache_of("web", [11, 40] * 9)}
    phase = Phase("main", 24 * 48, {"code": 1, "web": 1})
    mixture = Mixture(None, phase, sequences=sequences, repeats=None, batch=8, views={"code": view})
    return mixture.compile(caches), caches


@pytest.mark.parametrize("sequences", [Chunks(24), Packed(24)])
def test_rows_of_a_view_hold_sentinels_and_each_token_is_found_again(sequences):
    plan, caches = make_plan(sequences)
    loader = Loader(plan, caches)
    sentinels = 0
    for step in range(plan.steps):
        batch = loader.batch(step)
        for row in range(8):
            name = plan.components[batch.components[row]].name
            tokens = batch.tokens[row][batch.segments[row] > 0]
            assert (np.isin(tokens, (PREFIX, SUFFIX, MIDDLE)).any()) <= (name == "code")
            for at, token in enumerate(tokens.tolist()):
                if token in (PREFIX, SUFFIX, MIDDLE):
                    sentinels += 1
                    with pytest.raises(IndexError, match="sentinel"):
                        locate(plan, step, row, at, loader.packings, caches)
                else:
                    place = locate(plan, step, row, at, loader.packings, caches)
                    assert caches[name].stream[place.token] == token
    assert sentinels > 50


def test_plan_with_a_view_is_the_same_after_writing_and_other_plans_keep_their_digest():
    plan, caches = make_plan(Chunks(24))
    assert plan.to_json()["views"]["code"]["rate"] == [1, 1]
    again = Plan.from_json(json.dumps({**plan.to_json(), "digest": plan.digest}))
    assert again == plan
    plain = Mixture(None, Phase("main", 24 * 48, {}, others=1), sequences=Chunks(24), repeats=None, batch=8)
    assert "views" not in plain.compile(caches).to_json()


def test_view_of_no_component_or_beyond_the_vocabulary_is_refused():
    caches = {"code": cache_of("code", [70])}
    phase = Phase("main", 24 * 48, {"code": 1})
    for views, message in [
        ({"coed": ALWAYS}, "views rearrange 'coed'"),
        ({"code": FillInTheMiddle(1, 2, 1000)}, "ids of the tokenizer end at 999"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            Mixture(None, phase, sequences=Chunks(24), repeats=None, views=views).compile(caches)


@pytest.mark.parametrize("arguments", [(1, 1, 2), (1, 2, -3), (1, 2, 3, "5/4")])
def test_view_that_cannot_be_is_refused(arguments):
    with pytest.raises(ConfigurationError):
        FillInTheMiddle(*arguments)


def test_view_is_a_pure_function_of_seed_component_pass_and_chunk():
    rows = [sources(ALWAYS, [12], [False], epoch, chunk)[0] for epoch in range(3) for chunk in range(3)]
    assert rows == [sources(ALWAYS, [12], [False], epoch, chunk)[0] for epoch in range(3) for chunk in range(3)]
    assert len({tuple(row) for row in rows}) > 5
    assert view_key(7, "code").tolist() != view_key(7, "web").tolist() != view_key(8, "web").tolist()
    assert FillInTheMiddle.from_json(ALWAYS.to_json()) == ALWAYS and ALWAYS.rate == Fraction(1)


def test_token_of_a_view_without_its_cache_is_a_plan_error():
    plan, _ = make_plan(Chunks(24))
    sequence = next(s for s in range(len(plan)) if plan.component_of(s).name == "code")
    with pytest.raises(PlanError, match="give its cache"):
        locate(plan, *divmod(sequence, 8), 0)
