"""Who loses: counts by what documents are, against a recount from rows and ledger, for any cut into shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curate.accounting.statistics import Statistics, least, merge
from curate.accounting.who import MOST, MOST_HOSTS, Who, origins_of
from tests.curate.corpus import ledger
from tests.curate.who_corpus import attributes, host_in, run_over
from transforms.count_by import CountBy
from transforms.outcome import SchemaError, kept


def values(node: dict[str, Any]) -> dict[str | None, tuple[int, int]]:
    """Return value → documents that came in and were dropped; None for those without a value."""
    entries = [(entry["name"], entry) for entry in node["values"]["least"].values()]
    entries += [(None, node["without"])] if "without" in node else []
    return {name: (counts["documents"], counts.get("dropped", 0)) for name, counts in entries}


@pytest.mark.parametrize("files", [1, 3])
def test_counts_are_those_of_rows_and_ledger_for_any_cut(tmp_path: Path, files: int) -> None:
    result = run_over(tmp_path, files, chunk_rows=32)
    texts = result.outputs["texts"]
    rows = {row["id"]: row for batch in result.outputs["all"].batches() for row in batch.to_pylist()}
    gone = {row["id"]: row["transform"] for row in ledger(texts, "dropped")}
    steps = ["CountBy", "Where", "Where#2"]
    assert Counter(gone.values()).keys() == set(steps[1:])
    for place, step in enumerate(steps):
        came = [row for row in rows.values() if gone.get(row["id"]) not in steps[:place]]
        node = texts.statistics["who"]["steps"][f"{place:02d}"]
        counted = {**node["by"], **node["columns"]}
        assert set(counted) == set(attributes(came[0]))
        for name, found in counted.items():
            total = Counter(attributes(row)[name] for row in came)
            lost = Counter(attributes(row)[name] for row in came if gone.get(row["id"]) == step)
            assert values(found) == {value: (total[value], lost[value]) for value in total}, (step, name)


def test_counts_of_hosts_say_what_each_step_dropped(tmp_path: Path) -> None:
    result = run_over(tmp_path, 2)
    texts = result.outputs["texts"]
    rows = {row["id"]: row for batch in result.outputs["all"].batches() for row in batch.to_pylist() if row["url"]}
    came = Counter(host_in(row) for row in rows.values())
    lost = Counter(
        (host_in(rows[row["id"]]), {"Where": "01", "Where#2": "02"}[row["transform"]])
        for row in ledger(texts, "dropped")
        if row["id"] in rows
    )
    found = {entry["name"]: entry for entry in texts.statistics["who"]["hosts"]["least"].values()}
    assert {name: entry["documents"] for name, entry in found.items()} == came
    assert {(h, s): n for h, entry in found.items() for s, n in entry.get("dropped", {}).items()} == lost


def test_language_that_a_step_finds_is_that_of_column_and_evidence() -> None:
    batch = pa.record_batch({"id": pa.array([bytes([n] * 16) for n in range(5)], pa.binary(16))})
    tagged = batch.slice(0, 2).append_column("language", pa.array(["en", None], pa.large_string()))
    evidence = ['{"language":"tr"}', '{"language":null}', 'no JSON but "language"']
    dropped = [
        {"id": bytes([n + 2] * 16), "reason": "r", "transform": "T", "evidence": e} for n, e in enumerate(evidence)
    ]
    who = Who([])
    none = pa.array([0] * 5).to_numpy()
    who.count("00", origins_of(batch), batch, none, pa.array([2, 3, 4]).to_numpy(), kept(tagged, dropped=dropped))
    assert values(who.statistics()["steps"]["00"]["by"]["language"]) == {"en": (1, 0), "tr": (1, 1), None: (3, 2)}


def test_values_beyond_the_bound_are_those_of_lowest_digest_for_any_cut() -> None:
    names = [f"http://h{n:05}.example/" for n in range(9000)]
    whole = Who([CountBy("c")])
    parts: Statistics = {}
    for start in range(0, 9000, 1000):
        part = Who([CountBy("c")])
        for who in (whole, part):
            some = names[start : start + 1000] * 2
            batch = pa.record_batch(
                {"id": pa.array([bytes(16)] * 2000, pa.binary(16)), "url": pa.array(some, pa.large_string()),
                 "language": pa.array(some, pa.large_string()), "c": pa.array(some, pa.large_string())}
            )  # fmt: skip
            origins = who.enter(batch)
            rows = pa.array(range(2000)).to_numpy()
            who.count("00", origins, batch, rows, rows[:1], kept(batch.slice(1)))
        parts = merge(parts, part.statistics())
    assert parts == whole.statistics()
    found = parts["steps"]["00"]["by"]["language"]["values"]
    assert {entry["name"] for entry in found["least"].values()} == {
        entry["name"] for entry in least({name: {} for name in names}, MOST)["least"].values()
    }
    assert {entry["documents"] for entry in found["least"].values()} == {2}
    assert len(parts["hosts"]["least"]) == MOST_HOSTS


def test_text_cut_within_a_letter_is_read_to_the_letter_before() -> None:
    texts = ["1" * 511 + "я" * 9000, "a" * 511 + "я" * 9000, "a" * 510 + "€" * 9, "𝄞" * 2000, "", "я"]
    batch = pa.record_batch({"text": pa.array(texts, pa.large_string())})
    scripts = origins_of(batch).scripts
    assert scripts is not None
    assert [scripts.values[code] for code in scripts.codes] == [None, "Latn", "Latn", None, None, "Cyrl"]


def test_country_domain_is_a_label_of_two_letters_or_punycode() -> None:
    urls = ("http://a.DE/x", "http://a.de./", "http://u:p@x.co.uk:80/", "http://a.рф", "http://a.com", "http://de",
            "http://1.2.3.44", "http://[::1]/", None)  # fmt: skip
    countries = origins_of(pa.record_batch({"url": pa.array(urls, pa.large_string())})).countries
    assert countries is not None
    none = "no country"
    found = [countries.values[code] for code in countries.codes]
    assert found == ["de", "de", "uk", "xn--p1ai", none, none, none, none, None]


def test_count_by_refuses_what_is_not_there_or_no_value() -> None:
    schema = pa.schema([pa.field("url", pa.large_string()), pa.field("x", pa.float64()), pa.field("n", pa.int32())])
    assert CountBy("url", "n").output_schema(schema) == schema
    with pytest.raises(SchemaError, match="needs the column 'press'"):
        CountBy("press").output_schema(schema)
    with pytest.raises(SchemaError, match="'x' is double"):
        CountBy("x").output_schema(schema)
    with pytest.raises(ValueError, match="name at least one"):
        CountBy()
