"""Who goes for whom, and clusters, where datasets have several sources or survivors are only some of all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from curate import Outputs, deduplicate, read_jsonl
from curate.run import run
from tests.viewers.stores import report, stage, words
from transforms.minhash import MinHash
from viewers.clusters import between, clusters_of
from viewers.loading import load_report
from viewers.report import compose


def tables(data: bytes) -> dict[str, dict[str, Any]]:
    found = json.loads(data)
    return {table["caption"]: table for panel in found["panels"] for table in panel["tables"]}


def test_between_datasets_of_several_sources_names_them_together(tmp_path: Path) -> None:
    for name, first in (("a", 0), ("b", 5), ("c", 0)):
        path = tmp_path / f"{name}/x.jsonl"
        path.parent.mkdir()
        rows = [{"text": f"{words(n, 40)} {n}"} for n in range(first, first + 8)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    a, b, c = (read_jsonl(tmp_path / name, source=name) for name in "abc")
    early = deduplicate(a, b, name="early")
    late = deduplicate(early, c, method=MinHash(), name="late")
    result = run(Outputs(late=late), tmp_path / "store", runner="local")
    made = load_report(result.store, result.name)
    (last,) = [stage for stage in made.stages if stage.name == "late"]
    assert between(last) == {("c", "several sources"): 8}
    found = clusters_of(last)
    assert found is not None and found.is_all and set(found.sizes.values()) == {2}


def test_clusters_of_some_survivors_are_marked_as_sampled() -> None:
    leaf = {"least": {f"{n:032x}": {"documents": 1 + n} for n in range(4)}, "k": 4}
    operation = {"operation": "deduplicate", "fields": {}}
    made = compose(report(stage("dedup", statistics={"clusters": leaf}, manifest={"operation": operation})))
    (sizes,) = [table for caption, table in tables(made.data).items() if caption.startswith("Sizes of clusters")]
    assert sizes["mark"] == "sampled"
    assert sizes["rows"] == [["2", 1, "25.0%", 2], ["3", 1, "25.0%", 3], ["4 to 5", 2, "50.0%", 9]]
