"""Measured recall of a store's deduplications: of what came in, kept and checked."""

from __future__ import annotations

import json
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest

from curate import Outputs, deduplicate, read_jsonl, recipe
from curate.command_line import main
from curate.deduplication.recall import measured_stages
from curate.recall import FILE, UNIT, Recall, RecallPoint, StageRecall, read_recall, write_recall
from curate.receipts import read_manifest
from curate.run import Result, run
from curate.store import StoreError
from tests.transforms.test_banding_sample import versions
from transforms.minhash import MinHash

METHOD = MinHash(ngram=1, bands=4, rows=3)
TEXTS = [*versions(120, 0.8), "", "a single one"]


@recipe
def twice(root: str) -> Outputs:
    """Return documents without duplicates, and the same within languages."""
    texts = read_jsonl(root, source="texts", columns={"place": "place"})
    return Outputs(
        all=deduplicate(texts, method=METHOD, name="all"),
        within=deduplicate(texts, method=METHOD, within="place", name="within"),
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Result:
    root = tmp_path_factory.mktemp("recall")
    (root / "in").mkdir()
    for part in range(3):
        rows = [{"text": text, "place": f"p{n % 2}"} for n, text in enumerate(TEXTS) if n % 3 == part]
        (root / f"in/{part}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run(twice(str(root / "in")), root / "store", runner="local")


def test_stages_are_measured_on_what_came_in(made: Result) -> None:
    found = {stage.name: stage for stage, _, _ in measured_stages(made, 1000)}
    assert {name: stage.texts for name, stage in found.items()} == {"all": 241, "within": 241}
    assert sum(point.pairs for point in found["all"].points) > 100
    assert not found["within"].points  # the two texts of a pair have different places
    assert all(1 - 1e-9 > point.luck > 1e-4 or point.proposed == point.pairs for point in found["all"].points)


def test_command_keeps_what_was_measured_and_the_report_checks_it(
    made: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(made.store.root)
    assert main(["dedup-curve", "--store", store, "--pairs", "50"]) == 0
    printed = capsys.readouterr().out
    assert "all: 241 different texts came in" in printed and printed.splitlines()[-1].startswith("wrote ")
    kept = made.store.read_bytes(FILE)
    assert main(["dedup-curve", "--store", store, "--pairs", "50"]) == 0
    assert made.store.read_bytes(FILE) == kept
    assert main(["verify", store]) == 0
    assert main(["report", store, "--fail-on", "recall-measured"]) == 0
    key = read_manifest(made.store, made.name)["key"]
    recall = read_recall(made.store, key)
    assert recall is not None and sum(point.pairs for point in recall.stages[0].points) == 50
    assert read_recall(made.store, "0" * 64) is None
    short = RecallPoint("0.85", "0.9", 100, 50, 999_900 * 10**6)
    write_recall(made.store, Recall(key, (StageRecall("all", recall.stages[0].key, 9, (short,)),)))
    assert main(["report", store, "--fail-on", "any"]) == 1
    assert "50 of 100 of similarity 0.85 to 0.9 in all" in capsys.readouterr().err


def test_damaged_file_is_refused(made: Result) -> None:
    made.store.put(FILE, b'{"format":1,"kind":"recall"}\n')
    with pytest.raises(StoreError):
        read_recall(made.store, "0" * 64)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--bands", "3"], "leave --bands out"),
        (["--threshold", "0.7"], "leave --threshold out"),
        (["--pairs", "0"], "from 1 on"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str], said: str, made: Result, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dedup-curve", "--store", str(made.store.root), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_store_without_near_duplicates_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.jsonl").write_text('{"text": "a"}\n')
    run(Outputs(docs=read_jsonl(tmp_path / "in", source="a")), tmp_path / "store", runner="local")
    assert main(["dedup-curve", "--store", str(tmp_path / "store")]) == 2
    assert "looks for near duplicates" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("pairs", "proposed", "expected"),
    [(10, 3, 300_000), (40, 40, 990_000), (2000, 5, 4_000), (2000, 1999, 1_000_000 - Fraction("0.4"))],
)
def test_luck_is_the_binomial_sum(pairs: int, proposed: int, expected: Fraction) -> None:
    chance = Fraction(expected) / 10**6
    yes, no = chance.numerator, chance.denominator - chance.numerator  # whole numbers: fractions take seconds
    ways = sum(comb(pairs, n) * yes**n * no ** (pairs - n) for n in range(proposed + 1))
    exact = Fraction(ways, chance.denominator**pairs)
    assert RecallPoint("0", "1", pairs, proposed, int(chance * UNIT)).luck == pytest.approx(float(exact), rel=1e-9)


def test_luck_without_chance() -> None:
    assert RecallPoint("0", "1", 9, 9, UNIT).luck == 1
    assert RecallPoint("0", "1", 9, 8, UNIT).luck == 0
    assert RecallPoint("0", "1", 9, 0, 0).luck == 1
