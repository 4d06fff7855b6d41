"""Near misses, overlap of rules, what contamination checks left, offensive samples, pairs: in the page as counted."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.curate.corpus import ledger
from tests.viewers.parsed import Node, number, parse, tables
from tests.viewers.stores import HOSTILE, Made, report, sample, stage
from viewers.differences import Pieces, compare_words
from viewers.loading import StageView
from viewers.report import render
from viewers.sample_card import OFFENSIVE
from viewers.toxic import is_toxic


def counted(**documents: int) -> dict[str, Any]:
    return {name.replace("_", " "): {"documents": n} for name, n in documents.items()}


def filtered(name: str = "web", **more: Any) -> StageView:
    """Return a stage of two sources with one filter whose rules are all known."""
    pairs = {"a": counted(a=5, b=2, c=1), "b": counted(b=3, c=1), "c": counted(c=1)}
    one = {"documents_in": 20, "documents_out": 14, "characters_in": 200, "characters_out": 140}
    node = {
        **one,
        "dropped": {"Rules": {"a": {"documents": 5, "characters": 50}, "b": {"documents": 1, "characters": 10}}},
        "near": {"Rules": counted(a=7), "Decontaminate": counted(**{"contamination: quotation": 4})},
        "overlap": {"Rules": {"pairs": pairs, "alone": counted(a=3, b=1)}},
    }
    statistics = {"steps": {"00": {"name": "Rules", "sources": {f"{name} 1": node, f"{name} 2": node}}}}
    return stage(name, statistics=statistics, **more)


@pytest.fixture(scope="module")
def page_root(page: Path) -> Node:
    return parse(page.read_text("utf-8"))


def drawn(*stages: StageView) -> Node:
    return parse(render(report(*stages)))


def shown(root: Node, panel: str) -> dict[str, list[list[str]]]:
    return tables(root.one("section", id=panel))


def test_near_misses_are_counted_by_rule_over_all_sources() -> None:
    root = drawn(filtered(samples=(sample("text", kind="near miss", transform="Rules", reason="a"),)))
    assert shown(root, "samples")["Near misses by rule"][1:] == [["a", "Rules", "web", "14", "10"]]
    assert "14 documents" in root.one("section", id="samples").text


def test_overlap_counts_pairs_of_rules_and_what_one_drops_alone() -> None:
    (title,) = [name for name in shown(drawn(filtered()), "funnel") if name.startswith("Documents that fail two")]
    assert shown(drawn(filtered()), "funnel")[title] == [
        ["Rule", "Fail it", "Fail it only", "and 1", "and 2", "and 3"],
        ["1. a", "10", "6", "–", "4", "2"],
        ["2. b", "6", "2", "4", "–", "2"],
        ["3. c", "2", "0", "2", "2", "–"],
    ]


def test_overlap_of_a_run_is_that_of_its_ledger(made: Made, page_root: Node) -> None:
    (stage_of,) = [s for s in made.result.stages if s.name == "<i>crawl"]
    fails = [json.loads(row["evidence"])["fails"] for row in ledger(stage_of, "dropped") if row["evidence"]]
    ((_, *rows),) = [t for name, t in shown(page_root, "funnel").items() if name.startswith("Documents that fail two")]
    rules = [row[0].partition(" ")[2] for row in rows]
    assert len(fails) > 10 and set(rules) == {reason for reasons in fails for reason in reasons}
    for rule, row in zip(rules, rows, strict=True):
        mine = [reasons for reasons in fails if rule in reasons]
        both = [sum(other in reasons for reasons in mine) for other in rules]
        expected = [len(mine), sum(len(reasons) == 1 for reasons in mine), *both]
        assert [number(cell) for cell in row[1:] if cell != "–"] == [
            n for place, n in enumerate(expected) if place < 2 or rules[place - 2] != rule
        ]


def guarded(version: int) -> StageView:
    fields = {"coverage": "0.8", "ngram": 13, "action": "drop", "verdicts": ["leak"], "benchmarks": []}
    step = {"name": "Decontaminate", "transform": {"class": "Decontaminate", "version": version, "fields": fields}}
    found = sample("text", kind="near miss", transform="Decontaminate", reason="contamination: quotation")
    operation = {"operation": "documents", "reader": None, "steps": [step]}
    return filtered(manifest={"operation": operation}, samples=(found,))


@pytest.mark.parametrize(("version", "told"), [(2, "4"), (1, "not counted")])
def test_quotations_that_stay_are_counted_and_shown_with_contamination(version: int, told: str) -> None:
    root = drawn(guarded(version))
    (found,) = [rows for name, rows in shown(root, "contamination").items() if name.startswith("Found in")]
    assert found[1:] == [[f"web {n}", "quotation", "0", "0", "0", told] for n in (1, 2)]
    assert "contamination: quotation, left" in root.one("section", id="contamination").text
    assert "quotation" not in root.one("section", id="samples").text


def test_items_found_are_counted_by_benchmark_and_split() -> None:
    view = guarded(3)
    found = {
        "arc/test": {
            "documents": {"leak": {"web 1": 3, "web 2": 1}, "quotation": {"web 1": 2}},
            "items": {"leak": {"0": 2, "7": 2}, "quotation": {"9": 2}},
        },
        "mine": {"documents": {"variant": {"web 2": 1}}, "items": {"variant": {"3": 1}}},
    }
    view.statistics["steps"]["00"]["found"] = found
    (rows,) = [rows for name, rows in shown(drawn(view), "contamination").items() if name.startswith("Items found by")]
    assert rows[1:] == [
        ["arc/test", "not recorded", "2", "0", "1", "6", "web 1 5, web 2 1"],
        ["mine", "not recorded", "0", "1", "0", "1", "web 2 1"],
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"transform": "Switch(language=en)/URLWords#2", "reason": "soft words"},
        {"transform": "URLDenyList", "reason": "url list: x"},
        {"reason": "Toxicity too high"},
        {"measure": "hate speech"},
        {"evidence": '{"toxicity":"0.93"}'},
        {"evidence": '{"fails":["too few sentences","banned word"]}'},
        {"evidence": '{"url_deny_list_reason":"url list: adult"}'},
    ],
)
def test_text_found_by_lists_or_scores_of_toxicity_stands_behind_a_click(change: dict[str, Any]) -> None:
    root = drawn(stage(samples=(sample("rude words", url="http://rude.example", **change),)))
    (article,) = root.one("section", id="samples").all("article")
    behind = [d for d in article.all("details") if OFFENSIVE in d.text]
    assert len(behind) == 1 and "rude words" in behind[0].text and "rude.example" in behind[0].text
    assert article.text.count("rude") == behind[0].text.count("rude")
    assert "1 text, found by a list of addresses" in root.one("section", id="samples").text


@pytest.mark.parametrize("evidence", [None, "{", "[]", '"toxic"', '{"words":["whatever"]}'])
def test_text_found_by_another_rule_stands_open(evidence: str | None) -> None:
    assert not is_toxic(sample("x", reason="whatever is too short", measure="whatever", evidence=evidence))


def test_span_that_made_a_rule_fire_is_marked() -> None:
    root = drawn(stage(samples=(sample("0123456789", evidence='{"spans":[[2,5],[7,9],[90,99]]}'),)))
    assert [mark.text for mark in root.one("section", id="samples").all("mark")] == ["234", "78"]


@pytest.mark.parametrize("evidence", ["{", "[[1]]", '{"spans":[[true,2]]}', '{"spans":5}', "[[5,1]]", "[[-1,4]]"])
def test_evidence_without_good_spans_marks_nothing(evidence: str) -> None:
    assert not drawn(stage(samples=(sample("0123456789", evidence=evidence),))).all("mark")


def pair(dropped: str, kept: str, **survivor: Any) -> Node:
    goes = sample(dropped, 1, kind="pair", reason="near duplicate", evidence=json.dumps({"survivor": "07" * 16}))
    stays = sample(kept, 2, kind="survivor", evidence='{"documents":3}', id=bytes([7]) * 16, **survivor)
    operation = {"operation": "deduplicate", "fields": {"prefer": ["source", "-length"]}}
    made = stage(manifest={"operation": operation}, samples=(goes, {**goes, "kind": "dropped"}, stays))
    (article,) = drawn(made).one("section", id="duplicates").all("article")
    return article


def test_pair_shows_both_texts_what_differs_and_why_one_stays() -> None:
    article = pair("the quick fox sleeps", "the quick brown fox sleeps")
    assert [node.text for node in article.all("ins")] == ["brown "] and not article.all("del")
    assert "It stays because it is longer." in article.text and "near duplicates that go for it: 3" in article.text
    assert "its source comes first" in pair("one", "two", source="books").text
    assert "digest of its text" in pair("one", "two").text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_pair_stays_text(text: str) -> None:
    article = pair(f"{text} one", f"two {text}", url=text)
    tags = {node.tag for node in article.all()}
    assert tags <= {"p", "b", "div", "h5", "del", "ins", "details", "summary", "footer", "span", "bdi", "code"}
    assert "one" in article.text


def joined(pieces: Pieces, changed: bool) -> str:
    return "".join(piece.text for piece in pieces if piece.changed == changed)


def test_compare_words_marks_whole_words() -> None:
    left, right = compare_words("a cat sat on the mat", "a dog sat on a mat")
    assert [piece.text for piece in left if piece.changed] == ["cat", "the"]
    assert [piece.text for piece in right if piece.changed] == ["dog", "a"]
    assert joined(left, False) == joined(right, False)


def test_compare_words_of_unlike_long_texts_is_quick_and_loses_nothing() -> None:
    before, after = ("".join(f"{n * step % 997} " for n in range(400)) for step in (3, 5))
    begun = time.process_time()
    left, right = compare_words(before, after)
    assert time.process_time() - begun < 2
    assert joined(left, False) == joined(right, False)
    assert "".join(piece.text for piece in left) == before and "".join(piece.text for piece in right) == after
