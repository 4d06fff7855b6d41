"""The benchmark of deduplication: its truths are right, and what is wrong fails it."""

from __future__ import annotations

import argparse
import itertools
import runpy
import sys
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import dedup_adversarial, dedup_quality, dedup_scaling
from benchmarks.comparisons import records
from benchmarks.contract import faults_of
from benchmarks.dedup import Report, options_of
from benchmarks.dedup_adversarial import (
    AMOUNTS,
    CASES,
    Amount,
    growing,
    growing_similarity,
    growing_survivors,
    marks,
    sliding,
    sliding_similarity,
    write_texts,
)
from benchmarks.dedup_estimate import MEASURED, Figures, forecast, paragraph, recorded
from benchmarks.dedup_quality import (
    Truth,
    all_pairs,
    compared_with,
    expected,
    fast_truth_of,
    first_of_equals,
    joined_pairs,
    sequential_rule,
    truth_of,
)
from benchmarks.dedup_runs import Gone, Measured, Spec, Spent, measure, stays_of, verdicts_of
from benchmarks.dedup_speed import Row, Speed, checks_of, row_of
from benchmarks.install_peers import SCRIPTS
from transforms.minhash import MinHash, sets_of

ROOT = Path(__file__).parents[2]
FIGURES = Figures(270_000, 780_000_000, 27.0, 9e-5, 1.1e-4, 420, 1_000_000_000, 100_000, 200)


def array(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def family(count: int, seed: int = 1) -> list[str]:
    """Return texts of which many resemble each other, and some are equal."""
    draw = np.random.default_rng(seed)
    texts = []
    for number in range(count):
        words = [f"w{number % 7}x{place}" for place in range(60)]
        for place in draw.integers(0, 60, int(draw.integers(0, 4))).tolist():
            words[place] = f"other{number}"
        texts.append(" ".join(words[: int(draw.integers(50, 61))]))
    return [*texts, texts[0], "two words", "two words", ""]


def by_hand(texts: list[str], ngram: int = 5) -> dict[tuple[int, int], Fraction]:
    """Return all pairs at .8, by sets of Python."""
    sets = []
    for text in texts:
        words = text.split()
        sets.append({tuple(words[i : i + ngram]) for i in range(max(len(words) - ngram + 1, 1))})
    found = {}
    for a, b in itertools.combinations(range(len(texts)), 2):
        value = Fraction(len(sets[a] & sets[b]), max(len(sets[a] | sets[b]), 1))
        if value >= Fraction(4, 5) and texts[a] != texts[b]:
            found[a, b] = value
    return found


@pytest.mark.parametrize("frequent", [3, 32])
def test_all_pairs_and_joined_pairs_are_those_of_plain_sets(monkeypatch: pytest.MonkeyPatch, frequent: int) -> None:
    monkeypatch.setattr(dedup_quality, "FREQUENT", frequent)
    texts = sorted(set(family(120)))
    sets, expected = sets_of(array(texts), MinHash()), by_hand(texts)
    for found in (all_pairs(sets, Fraction(4, 5))[0], joined_pairs(sets, Fraction(4, 5))):
        columns = (found.a, found.b, found.shared, found.whole)
        pairs = {(a, b): Fraction(x, y) for a, b, x, y in zip(*(c.tolist() for c in columns), strict=True)}
        assert pairs == expected
    assert len(expected) > 50


def test_judge_counts_what_goes_alone_and_what_stays_together() -> None:
    texts = family(60)
    truth, rank = fast_truth_of(array(texts), MinHash()), np.arange(len(texts))
    pairs = by_hand(texts)
    similar = {frozenset(pair) for pair in pairs}
    similar |= {frozenset((a, b)) for a, b in itertools.combinations(rank.tolist(), 2) if texts[a] == texts[b]}
    stays = np.random.default_rng(3).random(len(texts)) < 0.4
    alone = sum(
        not any(frozenset((row, other)) in similar for other in np.flatnonzero(stays).tolist())
        for row in np.flatnonzero(~stays).tolist()
    )
    left = sum(all(stays[row] for row in pair) for pair in similar)
    assert truth.judge(stays) == (int((~stays).sum()), alone, left)
    assert alone > 0 and left > 0


def test_rule_in_plain_python_names_the_most_similar_survivor() -> None:
    texts = family(60)
    rank = np.random.default_rng(5).permutation(len(texts))
    truth = truth_of(array(texts), rank, MinHash(bands=60, rows=2))
    keeper, similar = sequential_rule(truth, rank), by_hand(texts)
    for row, (other, value) in keeper.items():
        assert other not in keeper and rank[other] < rank[row]
        assert similar[min(row, other), max(row, other)] == value
    verdicts = expected(truth, rank)
    assert set(keeper) <= set(verdicts) and {v[1] for v in verdicts.values()} == {"near duplicate", "equal text"}
    stay = [row for row in range(len(texts)) if row not in verdicts]
    assert not any((a, b) in similar for a, b in itertools.combinations(stay, 2))


def test_first_of_equals_follows_the_keep_order() -> None:
    assert first_of_equals(array(["a", "b", "a"]), np.array([2, 1, 0])).tolist() == [2, 1, 2]


def test_other_verdicts_and_absent_survivors_are_counted() -> None:
    names, rows = {b"0": "zero", b"1": "one", b"2": "two"}, {"zero": 0, "one": 1, "two": 2}
    wanted = {1: (0, "near duplicate", Fraction(9, 10))}
    right = {b"1": Gone("near duplicate", b"0", 9, 10)}
    assert compared_with(wanted, ["zero", "two"], names, right, rows) == (0, 0)
    assert compared_with(wanted, ["zero", "two"], names, {b"1": replace(right[b"1"], shared=8)}, rows) == (1, 0)
    assert compared_with(wanted, ["zero", "one", "two"], names, {}, rows) == (1, 0)
    assert compared_with(wanted, ["two"], names, right, rows) == (1, 1)  # zero neither stays nor goes
    assert compared_with(wanted, ["zero"], names, {**right, b"2": Gone("empty text", None, None, None)}, rows) == (1, 1)


def test_speed_of_a_set_with_a_document_lost_fails(tmp_path: Path) -> None:
    texts = family(30)
    truth = fast_truth_of(array(texts), MinHash(bands=60, rows=2))
    verdicts = expected(truth, np.arange(len(texts)))
    stays = np.array([row not in verdicts for row in range(len(texts))])
    right = row_of("ours", 500.0, stays, truth, "", 500.0, 1)
    assert all(holds for _, _, holds in checks_of([right], truth, "full").values())
    assert not checks_of([replace(right, ours=40.0)], truth, "full")["MB per CPU second, from Parquet to Parquet"][2]
    rensa = replace(right, name="rensa", rate=200.0)
    assert checks_of([right, rensa], truth, "full")["ours / rensa"] == [2.5, "≥ 3", False]
    beside = replace(rensa, ours=640.0)  # what counts is ours right before it
    assert checks_of([right, beside], truth, "full")["ours / rensa"] == [3.2, "≥ 3", True]
    stays[np.flatnonzero(stays)[-1]] = False
    lost = checks_of([row_of("ours", 5000.0, stays, truth, "", 5000.0, 1)], truth, "full")
    assert [holds for _, _, holds in lost.values()] == [False, True, True]


def measured(cpu: float, peak: int) -> Measured:
    return Measured(cpu, peak, {"sign": Spent(1, 1.0, peak)}, 1, 1, 1, 1, 1, {})


def test_ratios_are_to_ours_right_before_each_tool(tmp_path: Path) -> None:
    ours = Row("ours", 46.0, 2, 1, 0, 0, "", 46.0, 5)
    others = (Row("rensa", 16.0, 2, 1, 0, 0, "", 48.0, 5), Row("text-dedup", 2.0, 2, 1, 0, 0, "", 50.0, 3))
    report = Report(tmp_path, argparse.Namespace(size="full"))
    report.speed = Speed((ours, *others), measured(1.0, 1), 1, {}, {"rensa": "1"})
    report.checks = {"one": [1, "= 1", True]}
    line = report.as_json()
    assert not faults_of(line)
    assert (line["ours"], line["peers"], line["ratio"]) == (48.0, {"rensa": 16.0}, 3.0)
    assert line["rows"] == [{"what": "beside text-dedup", "ours": 50.0, "peers": {"text-dedup": 2.0}}]
    report.speed = replace(report.speed, rows=(ours,))
    alone = report.as_json()
    assert (alone["ours"], alone["peers"], alone["ratio"], alone["rows"]) == (46.0, {}, None, [])


def test_fastest_turn_of_another_tool_counts_and_the_last_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer: Any = runpy.run_path(str(SCRIPTS / "peer.py"))
    seconds = iter([0.0, 5.0, 5.0, 7.0, 7.0, 11.0])  # turns of 5, 2 and 4
    monkeypatch.setitem(peer["Clock"].__init__.__globals__, "_cpu", lambda: next(seconds))
    monkeypatch.setattr(sys, "argv", ["script", "corpus", "folder", "-", "3"])
    seen: list[Path] = []
    report, last = peer["least"](tmp_path, seen.append)
    assert report.cpu == 2.0 and len(set(seen)) == 3
    assert list(tmp_path.iterdir()) == [last] == [seen[-1]]


def test_scaling_that_is_not_flat_fails() -> None:
    def holds(*runs: tuple[float, int]) -> list[bool]:
        scales = [
            dedup_scaling.Scale(times, 100 * times, 1000, measured(cpu * times, peak))
            for times, (cpu, peak) in zip((1, 4, 16), runs, strict=True)
        ]
        return [right for _, _, right in dedup_scaling.checks_of(scales, "full").values()]

    assert holds((1.0, 300), (1.1, 300), (1.3, 370)) == [True, True]
    assert holds((1.0, 300), (1.1, 300), (1.4, 380)) == [False, False]


def test_versions_are_as_similar_as_arithmetic_says() -> None:
    amount = Amount(12, 14, 1)
    for texts, similarity in ((growing(amount), growing_similarity), (sliding(amount), sliding_similarity)):
        made = list(texts)
        assert by_hand(made) == {
            pair: value
            for pair in itertools.combinations(range(len(made)), 2)
            if (value := similarity(*pair)) >= Fraction(4, 5)
        }
    assert growing_survivors(14) == 2


def test_marked_texts_are_all_different_and_differ_in_marks_alone() -> None:
    texts = list(marks(Amount(48, 1, 1)))
    assert len(set(texts)) == len(texts) == 48


def test_case_is_judged_by_what_the_engine_left(tmp_path: Path) -> None:
    amount, case = Amount(150, 20, 1), CASES["chain"]
    write_texts(tmp_path / "in" / "texts.parquet", case.texts(amount))
    made = measure(Spec("unique_by_place", tmp_path / "in", tmp_path / "store", turns=2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "store"]  # earlier turns leave nothing
    assert case.holds(made, tmp_path / "store", amount)
    assert made.documents == 150 and made.cpu > 0 and made.task_mb > 50
    stays, names, gone = verdicts_of(tmp_path / "store")
    assert len(stays) == made.kept == int(stays_of(tmp_path / "store").sum()) and len(names) == 150
    assert len(gone) == 150 - made.kept > 0
    assert not case.holds(replace(made, kept=made.kept + 1, documents=151), tmp_path / "store", amount)


def test_texts_are_written_whole_whatever_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dedup_adversarial, "ROWS_AT_ONCE", 3)
    path = tmp_path / "in" / "texts.parquet"
    assert write_texts(path, iter(["ä", "b", "", "dd"] * 2)) == 10
    table = pq.read_table(path)
    assert table.column("text").to_pylist() == ["ä", "b", "", "dd"] * 2
    assert table.column("place").to_pylist() == list(range(8)) and AMOUNTS["full"].documents == 100_000


def test_estimate_grows_with_the_documents_and_names_what_it_is_made_of() -> None:
    one, ten = forecast(FIGURES, 10**9), forecast(FIGURES, 10**10)
    assert ten.text_tb == pytest.approx(10 * one.text_tb) and ten.tasks == pytest.approx(10 * one.tasks)
    assert 10 * one.minutes[0] == pytest.approx(ten.minutes[0], rel=0.05)
    assert forecast(FIGURES, FIGURES.documents).levels == 1 < ten.levels
    text = paragraph(FIGURES)
    assert "270,000 documents of 2,889 bytes" in text and max(map(len, text.split("\n"))) <= 116


def test_guide_has_the_estimate_of_the_figures_that_were_recorded() -> None:
    page = (ROOT / "docs" / "deduplication.md").read_text()
    figures = Figures.kept(records())
    assert figures is not None and recorded(page, figures) == page
    with pytest.raises(ValueError, match="has no"):
        recorded("nothing", FIGURES)


def test_estimate_is_of_the_last_day_on_which_scales_were_measured() -> None:
    older, newer = asdict(replace(FIGURES, cpu=30.0)), asdict(FIGURES)
    kept = [
        {"benchmark": "dedup", "date": "2026-12-03", "result": {}},
        {"benchmark": "dedup", "date": "2026-12-02", "result": {MEASURED: newer}},
        {"benchmark": "dedup", "date": "2026-12-01", "result": {MEASURED: older}},
        {"benchmark": "minhash", "date": "2026-12-04", "result": {MEASURED: older}},
    ]
    assert Figures.kept(kept) == FIGURES and Figures.kept(kept[:1]) is None


def test_other_tools_are_none_all_or_those_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert [options_of(given).peers for given in ([], ["--peers"], ["--peers", "rensa"])] == [None, [], ["rensa"]]
    with pytest.raises(SystemExit):
        options_of(["--peers", "renza"])
    assert "no tool is called 'renza'" in capsys.readouterr().err


def test_truth_without_pairs_is_judged(tmp_path: Path) -> None:
    truth: Truth = fast_truth_of(array(["one text", "another text"]), MinHash())
    assert truth.judge(np.array([True, False])) == (1, 1, 0)
