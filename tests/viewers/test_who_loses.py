"""Who loses: tables of the page against a recount from rows and ledger, the interval, small groups, hostile names."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from curate.accounting.statistics import least
from curate.accounting.who import MONTH
from curate.store import Store
from tests.curate.corpus import ledger
from tests.curate.who_corpus import attributes, run_over
from tests.viewers.parsed import parse, tables
from tests.viewers.stores import HOSTILE, report, stage
from viewers.dots import WIDTH, place
from viewers.intervals import logarithm, wilson
from viewers.language_names import NAMES, language_name
from viewers.loading import StageView, load_report
from viewers.numbers import fixed, grouped, rounded, share
from viewers.panels.languages import languages
from viewers.panels.who_loses import who_loses
from viewers.who import SMALL, length_name, removals

STEPS = ["CountBy", "Where", "Where#2"]


def bounds(part: int, whole: int) -> tuple[float, float]:
    """Return Wilson's interval as the book has it."""
    z, rate = 1.96, part / whole
    middle = rate + z * z / (2 * whole)
    half = z * math.sqrt(rate * (1 - rate) / whole + z * z / (4 * whole * whole))
    return tuple((middle + sign * half) / (1 + z * z / whole) for sign in (-1, 1))  # type: ignore[return-value]


def test_wilson_interval_is_that_of_the_formula_and_holds_the_rate() -> None:
    for whole in (1, 7, 50, 1000, 10**9):
        for part in {0, 1, whole // 3, whole // 2, whole - 1, whole}:
            low, high = wilson(part, whole)
            assert low <= part * 10**6 / whole <= high
            assert (low, high) == pytest.approx([bound * 10**6 for bound in bounds(part, whole)], abs=2)
    assert wilson(0, 0) == (0, 10**6)


def test_logarithm_is_that_of_the_library_rounded_down() -> None:
    for ratio in ((1, 1), (2, 1), (1, 8), (3, 7), (10**30, 7), (999_999, 1_000_000)):
        assert logarithm(*ratio) == math.floor(math.log2(ratio[0] / ratio[1]) * 4096)
    assert [place(*ratio) for ratio in ((0, 1), (1, 100), (1, 8), (1, 1), (2, 1), (100, 1))] == [
        0, 0, 0, WIDTH // 2, WIDTH * 2 // 3, WIDTH]  # fmt: skip


def test_tables_of_filters_are_what_rows_and_ledger_say(tmp_path: Path) -> None:
    result = run_over(tmp_path, 2, 480)
    loaded = load_report(Store(tmp_path / "store"), result.folder.name)
    panel = who_loses(loaded)
    assert panel is not None
    shown = tables(parse(panel.markup().html))
    rows = {row["id"]: row for batch in result.outputs["all"].batches() for row in batch.to_pylist()}
    gone = {row["id"]: row["transform"] for row in ledger(result.outputs["texts"], "dropped")}
    for index, step in enumerate(STEPS):
        came = [row for row in rows.values() if gone.get(row["id"]) not in STEPS[:index]]
        lost = [row for row in came if gone.get(row["id"]) == step]
        caption = f"{step} in texts, by what documents are"
        if not lost:
            assert caption not in shown
            continue
        expected = {}
        for name in attributes(came[0]).keys() - {MONTH}:  # in the distributions
            total, dropped = (Counter(attributes(row)[name] for row in some) for some in (came, lost))
            for value in total:
                label = f"no {name}" if value is None else length_name(value) if name == "length" else value
                label = language_name(label) if name == "language" else label
                if total[value] >= SMALL:
                    expected[label] = cells(dropped[value], total[value], len(lost), len(came))
        found = {row[0]: row[1:] for row in shown[caption] if len(row) > 1 and "others by" not in row[0]}
        found.pop("Group")
        assert {label: row for label, row in found.items() if not label.startswith("hosts of")} == expected


def test_languages_are_told_with_what_each_filter_takes_from_them(tmp_path: Path) -> None:
    result = run_over(tmp_path, 2, 480)
    panel = languages(load_report(Store(tmp_path / "store"), result.folder.name))
    assert panel is not None
    shown = tables(parse(panel.markup().html))
    rows = {row["id"]: row for batch in result.outputs["all"].batches() for row in batch.to_pylist()}
    gone = {row["id"]: row["transform"] for row in ledger(result.outputs["texts"], "dropped")}
    expected = set()
    for index, step in enumerate(STEPS):
        came = [row for row in rows.values() if gone.get(row["id"]) not in STEPS[:index]]
        total, lost = (
            Counter(attributes(row)["language"] for row in came if some in (None, gone.get(row["id"])))
            for some in (None, step)
        )
        lost.pop(None, None)
        for code, number in lost.items():
            row = (f"{step} in texts", grouped(total[code]), grouped(number), share(number, total[code]))
            expected.add((language_name(code), *row))
    found = shown["What filters take from each language"][1:]
    assert {tuple(row) for row in found} == expected and len(found) == len(expected) > 0
    held = Counter(row["language"] for row in rows.values() if row["id"] not in gone and row["language"])
    assert {(row[0], row[1]) for row in shown["Languages of texts"][1:]} == {
        (language_name(code), grouped(number)) for code, number in held.items()
    }


def test_language_names_are_by_code_and_unknown_codes_stay() -> None:
    assert language_name("tr") == "Turkish (tr)" and language_name("lu") == "Luba-Katanga (lu)"
    assert language_name("xx") == "xx" and len(NAMES) > 200
    assert all(code.isalpha() and len(code) in (2, 3) and name[0].isupper() for code, name in NAMES.items())


def cells(lost: int, came: int, all_lost: int, all_came: int) -> list[str]:
    """Return the cells of a row, its interval from the formula with floats."""
    rate = all_lost / all_came
    low, high = (f"{abs(bound) / rate:.2f}" for bound in bounds(lost, came))
    ratio = fixed(rounded(lost * all_came, came * all_lost, 2), 2)
    return [grouped(came), grouped(lost), share(lost, came), ratio, f"{low} – {high}"]


def counted(name: str, values: dict[str, tuple[int, int]], **more: Any) -> StageView:
    """Return a stage whose only step, "Filter", met 1,000 documents and dropped 100, with these counts of `name`."""
    node = {"values": least({v: {"documents": c, "dropped": lost} for v, (c, lost) in values.items()}, 256)}
    flows = {"documents_in": 1000, "documents_out": 900, "characters_in": 0, "characters_out": 0}
    statistics = {
        "steps": {"00": {"name": "Filter", "sources": {"s": flows}}},
        "who": {"steps": {"00": {"by": {name: node}}}, **more},
    }
    return stage("web", statistics=statistics)


def test_small_groups_and_values_beyond_the_counted_ones_are_others() -> None:
    (removal,) = removals(report(counted("topic", {"a": (600, 60), "b": (49, 0), "c": (1, 1)})))
    assert [(lot.value, lot.came, lot.lost) for lot in removal.attributes[0].lots] == [
        ("a", 600, 60),
        ("others by topic", 400, 40),
    ]
    (removal,) = removals(report(counted("topic", {"a": (950, 60), "b": (49, 40), "c": (1, 0)})))
    assert [(lot.value, lot.came, lot.lost) for lot in removal.attributes[0].lots] == [
        ("2 others by topic", 50, 40),
        ("a", 950, 60),
    ]


def test_groups_are_ordered_by_the_nearer_end_of_their_interval() -> None:
    values = {"few, none lost": (60, 0), "many, half as often": (500, 25), "twice": (300, 60), "as all": (140, 15)}
    (removal,) = removals(report(counted("language", values)))
    lots = removal.attributes[0].lots
    assert [lot.value for lot in lots] == ["few, none lost", "twice", "many, half as often", "as all"]
    assert lots[-1].unequal == 10**6 < lots[-2].unequal


def test_host_sizes_are_of_the_hosts_that_are_kept_and_marked_where_these_are_some() -> None:
    entries = {f"h{n}": {"documents": 1, "dropped": {"00": 1}} for n in range(60)}
    entries |= {f"g{n}": {"documents": 30} for n in range(4)}
    for k, sampled in ((64, True), (65, False)):
        (removal,) = removals(report(counted("topic", {}, hosts=least(entries, k))))
        (sizes,) = removal.attributes
        assert sizes.is_sampled == sampled
        assert [(lot.value, lot.came, lot.lost) for lot in sizes.lots] == [
            ("hosts of 10 to 99", 120, 0),
            ("hosts of 1 document", 60, 60),
        ]


def test_held_out_documents_and_results_without_counts_have_no_panel() -> None:
    held = counted("topic", {"a": (500, 100), "b": (500, 0)})
    held.manifest["operation"]["operation"] = "hold out"
    assert who_loses(report(held)) is None
    assert who_loses(report(stage())) is None


def test_hostile_values_are_shown_as_text() -> None:
    panel = who_loses(report(counted("topic", {name: (90, 8 + number % 2) for number, name in enumerate(HOSTILE)})))
    assert panel is not None
    html = panel.markup().html
    parse(html)
    assert "<script" not in html and "<img" not in html and "\u202e" not in html
