"""Near misses and the overlap of rules, counted: the same for any cut into batches and shards."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from curate import Outputs, read_jsonl
from curate.accounting.measures import coded
from curate.accounting.rules import MOST, count_near, count_overlap
from curate.accounting.statistics import Statistics, merge
from tests.curate.corpus import ledger, run_on, write_lines
from transforms.gopher_rules import GopherQuality
from transforms.outcome import DROPPED, rows

RULES = GopherQuality(min_words=20, min_stop_words=2, max_mean_word_length=20).all_reasons()
TEXTS = [
    "# " * 9 + "short",
    "of the and to " * 5,
    "the of " + "word " * 19,
    "rain " * 30,
    "… " * 40,
    "of the hill " * 12,
]


def dropped(*evidence: str | None) -> pa.RecordBatch:
    """Return rows of what is dropped, with this evidence."""
    return rows(DROPPED, [{"id": bytes(16), "transform": "T", "reason": "r", "evidence": e} for e in evidence])


def overlap(*evidence: str | None) -> Statistics:
    """Return the overlap that is counted of what is dropped of one source."""
    node: Statistics = {"s": {}}
    count_overlap(node, coded(pa.array(["s"] * len(evidence))), dropped(*evidence))
    return dict(node["s"].get("overlap", {}).get("T", {}))


def test_overlap_of_two_rules_counts_each_pair_and_what_one_drops_alone() -> None:
    both, one = '{"fails":["b","a"]}', '{"fails":["b"]}'
    assert overlap(both, one, both, None) == {
        "pairs": {
            "a": {"a": {"documents": 2}, "b": {"documents": 2}},
            "b": {"b": {"documents": 3}},
        },
        "alone": {"b": {"documents": 1}},
    }


@pytest.mark.parametrize(
    "evidence",
    ['{"fails":[1]}', '{"fails":["a",null]}', '"fails":[', '[{"fails":["a"]}]', '{"x":{"fails":["a"]}}', None],
)
def test_evidence_that_lists_no_reasons_counts_nothing(evidence: str | None) -> None:
    assert overlap(evidence) == {}


def test_document_that_fails_thousands_of_rules_counts_the_first() -> None:
    found = overlap(json.dumps({"fails": [f"{n:05}" for n in range(9000)]}, separators=(",", ":")))
    assert sum(map(len, found["pairs"].values())) == MOST * (MOST + 1) // 2


def test_reasons_that_are_called_like_leaves_merge() -> None:
    node: Statistics = {"s": {}}
    near = rows(DROPPED, [{"id": bytes(16), "transform": "least", "reason": name} for name in ("k", "sum", "hll")])
    count_near(node, coded(pa.array(["s"] * 3)), near)
    count_overlap(node, coded(pa.array(["s"])), dropped('{"fails":["k","sum"]}'))
    assert merge(node, node)["s"]["near"]["least"]["k"] == {"documents": 2}
    assert merge(node, node)["s"]["overlap"]["T"]["pairs"]["k"]["sum"] == {"documents": 2}


@pytest.mark.parametrize("files", [1, 3])
def test_counts_of_a_run_are_those_of_its_documents_for_any_cut(tmp_path: Path, files: int) -> None:
    lines = [{"text": f"{text} {n}"} for n, text in enumerate(TEXTS * 4)]
    for part in range(files):
        write_lines(tmp_path / f"in/{part}.jsonl", lines[part::files])
    texts = run_on(Outputs(texts=read_jsonl(tmp_path / "in", source="s").apply(RULES)), tmp_path / "store").outputs
    node: dict[str, Any] = texts["texts"].statistics["steps"]["00"]["sources"]["s"]
    fails = [sorted(json.loads(row["evidence"])["fails"]) for row in ledger(texts["texts"], "dropped")]
    pairs = Counter(pair for reasons in fails for pair in combinations_with_replacement(reasons, 2))
    found = node["overlap"]["GopherQuality"]
    counted = {(a, b): n["documents"] for a, others in found["pairs"].items() for b, n in others.items()}
    assert len(pairs) > 5 and counted == pairs
    alone = Counter(reasons[0] for reasons in fails if len(reasons) == 1)
    assert {reason: n["documents"] for reason, n in found["alone"].items()} == alone
    assert node["near"] == {"GopherQuality": {"too few stop words": {"documents": 4}}}  # exactly two of them
