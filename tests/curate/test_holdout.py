"""Holding out through the engine: training and validation share no text and no near pair, whatever the layout."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from curate import Dataset as Described
from curate import Outputs, read_jsonl
from curate.configuration import ConfigurationError
from curate.recipes.evaluation import hold_out
from curate.run import Result
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, tasks, texts, write_lines
from tests.transforms.test_duplicates import SHARED, array, variants
from transforms.duplicates import text_digests
from transforms.minhash import MinHash, shingle_sets

Row = dict[str, Any]


def documents(count: int = 200, seed: int = 7) -> list[Row]:
    """Return rows with families of near and equal texts, two groups and a null one, and an empty text."""
    draw = random.Random(seed)
    found = [*variants(count, seed), *variants(count, seed)[: count // 8], ""]
    return [
        {"name": f"n{number}", "text": text, "group": draw.choice(["a", "a", "b", None])}
        for number, text in enumerate(found)
    ]


def source(root: Path, rows: Sequence[Row], files: int = 1, seed: int = 1) -> Described:
    """Write `rows` to so many files in some order and return the dataset that reads them."""
    draw = random.Random(seed)
    mine = list(rows)
    draw.shuffle(mine)
    for number in range(files):
        write_lines(root / f"{number}.jsonl", [dict(row) for row in mine[number::files]])
    return read_jsonl(root, source="s", columns={"group": "group", "key": "name"})


def held_out(root: Path, rows: Sequence[Row], store: Path, files: int = 1, seed: int = 1, **options: Any) -> Result:
    train, valid = hold_out(source(root, rows, files, seed), **options)
    return run_on(Outputs(train=train, valid=valid), store, ShuffledRunner(seed))


def rows_of(dataset: Any) -> list[Row]:
    return [row for batch in dataset.batches() for row in batch.to_pylist()]


def similarities(left: Sequence[str], right: Sequence[str], ngram: int = 5) -> list[list[Fraction]]:
    """Return the exact Jaccard similarity of each text of `left` with each of `right`."""
    plain = []
    for side in (left, right):
        sets = shingle_sets(array(list(side)), ngram)
        plain.append([set(sets.values[i:j].tolist()) for i, j in pairwise(sets.offsets.tolist())])
    return [[Fraction(len(a & b), max(1, len(a | b))) for b in plain[1]] for a in plain[0]]


def check_guarantees(result: Result, came: Sequence[Row], threshold: Fraction) -> None:
    """Compare all with all: what may stay stays, what may not goes, with its evidence."""
    train, valid = rows_of(result.outputs["train"]), rows_of(result.outputs["valid"])
    gone = {row["id"]: row for row in ledger(result.outputs["train"])}
    assert Counter(r["id"] for r in train) + Counter(list(gone)) == Counter(r["id"] for r in came)
    assert {i for i, row in gone.items() if row["reason"] == "held out"} == {row["id"] for row in valid}
    held = {row["text"] for row in valid}
    named = {row["id"]: row["text"] for row in valid}
    table = similarities([row["text"] for row in came], [row["text"] for row in valid])
    for row, values in zip(came, table, strict=True):
        best = max(values, default=Fraction(0))
        why = gone.get(row["id"])
        if row["id"] in named:
            assert why is not None
        elif row["text"] in held:
            assert why is not None and why["reason"] == "equal to held-out text"
            assert named[bytes.fromhex(json.loads(why["evidence"])["held_out"])] == row["text"]
        elif best >= threshold:
            assert why is not None and why["reason"] == "near duplicate of held-out text"
            assert Fraction(why["numerator"], why["denominator"]) == best
            other = [r["id"] for r in valid].index(bytes.fromhex(json.loads(why["evidence"])["held_out"]))
            assert values[other] == best
        else:
            assert why is None


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({"documents": 12}, 1),
        ({"documents": 7, "per": "group"}, 3),
        ({"characters": 9000, "near_duplicates": 0.5}, 2),
        ({"characters": 4000, "per": "group", "near_duplicates": MinHash(threshold="0.7")}, 4),
    ],
)
def test_holding_out_equals_comparing_all_with_all(tmp_path: Path, options: dict[str, Any], files: int) -> None:
    result = held_out(tmp_path / "in", documents(), tmp_path / "store", files, **options)
    near = options.get("near_duplicates", 0.8)
    threshold = near.ratio if isinstance(near, MinHash) else Fraction(str(near))
    check_guarantees(result, rows_of(result.stages[0]), threshold)
    reasons = Counter(row["reason"] for row in ledger(result.outputs["train"]))
    assert reasons["held out"] == result.outputs["valid"].rows > 0
    assert reasons["equal to held-out text"] and reasons["near duplicate of held-out text"]
    assert verify(tmp_path / "store").ok


def test_strata_each_give_what_was_asked_for(tmp_path: Path) -> None:
    result = held_out(tmp_path / "in", documents(), tmp_path / "store", 3, documents=9, per="group")
    assert Counter(row["group"] for row in rows_of(result.outputs["valid"])) == {"a": 9, "b": 9, None: 9}


def test_stratum_smaller_than_twice_the_limit_gives_half_of_it(tmp_path: Path) -> None:
    rows = [{"name": str(n), "text": f"text {n} " * 9, "group": "b" if n < 5 else "a"} for n in range(60)]
    result = held_out(tmp_path / "in", rows, tmp_path / "store", 2, documents=10, per="group", near_duplicates=None)
    assert Counter(row["group"] for row in rows_of(result.outputs["valid"])) == {"a": 10, "b": 2}


def test_parts_do_not_depend_on_files_order_or_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for case, (files, chunk_rows) in enumerate([(1, 4096), (5, 4096), (3, 7)]):
        train, valid = hold_out(source(tmp_path / f"in{case}", documents(), files, case), characters=6000, per="group")
        outputs = Outputs(train=train, valid=valid)
        result = run_on(outputs, tmp_path / f"store{case}", ShuffledRunner(case), chunk_rows)
        goes = Counter((row["reason"], row["text_digest"]) for row in ledger(result.outputs["train"]))
        found.append((sorted(texts(result.outputs["train"])), sorted(texts(result.outputs["valid"])), goes))
    assert found[0] == found[1] == found[2]


def test_without_near_duplicates_only_equal_texts_leave(tmp_path: Path) -> None:
    result = held_out(tmp_path / "in", documents(), tmp_path / "store", 2, documents=15, near_duplicates=None)
    reasons = {row["reason"] for row in ledger(result.outputs["train"])}
    assert reasons == {"held out", "equal to held-out text"}
    assert not set(texts(result.outputs["train"])) & set(texts(result.outputs["valid"]))


def test_empty_texts_are_never_held_out_and_stay(tmp_path: Path) -> None:
    rows = [{"name": str(n), "text": "" if n % 2 else f"some text {n}", "group": "a"} for n in range(20)]
    result = held_out(tmp_path / "in", rows, tmp_path / "store", documents=500)
    assert all(texts(result.outputs["valid"])) and result.outputs["valid"].rows == 5
    assert texts(result.outputs["train"]).count("") == 10


def test_second_part_reuses_the_tasks_of_the_first(tmp_path: Path) -> None:
    train, valid = hold_out(source(tmp_path / "in", documents(60), 2), documents=5)
    run_on(Outputs(train=train), tmp_path / "store")
    run_on(Outputs(train=train, valid=valid), tmp_path / "store")
    assert set(tasks(tmp_path / "store")) == {"valid"}
    assert verify(tmp_path / "store").ok


def test_validation_asked_for_alone_equals_that_made_with_training(tmp_path: Path) -> None:
    train, valid = hold_out(source(tmp_path / "in", documents(60), 2), documents=5)
    alone = run_on(Outputs(valid=valid), tmp_path / "alone")
    both = run_on(Outputs(train=train, valid=valid), tmp_path / "both")
    assert alone.outputs["valid"].content == both.outputs["valid"].content
    assert alone.outputs["valid"].key == both.outputs["valid"].key != both.outputs["train"].key


def test_missing_column_of_strata_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="nonsense"):
        held_out(tmp_path / "in", documents(20), tmp_path / "store", documents=5, per="nonsense")


def test_training_has_no_text_near_validation_in_real_licences(tmp_path: Path) -> None:
    path = SHARED / "spdx_docs.parquet"
    if not path.exists():
        pytest.skip("../shared/data is not there")
    licences = pq.read_table(path).column("text").to_pylist()
    rows = [{"name": str(number), "text": text, "group": "a"} for number, text in enumerate(licences)]
    result = held_out(tmp_path / "in", rows, tmp_path / "store", 3, characters=80_000)
    check_guarantees(result, rows_of(result.stages[0]), Fraction(4, 5))
    assert text_digests(array(texts(result.outputs["valid"]))).to_pylist()
