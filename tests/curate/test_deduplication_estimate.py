"""What a deduplication says that it will need, and where that is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curate import Outputs, deduplicate, read_jsonl
from curate.deduplication.estimate import estimate, passes
from curate.exchange import LIMITS
from curate.planning.plan import plan
from curate.recipes.graph import Deduplicate
from curate.running.journal import events_of, runs_in
from curate.store import Store
from tests.curate.corpus import run_on, write_lines
from transforms.minhash import MinHash


def of(method: MinHash | None) -> Any:
    operation = deduplicate(read_jsonl("/nowhere", source="s"), method=method).operation
    assert isinstance(operation, Deduplicate)
    return operation


def test_estimate_grows_with_rows_and_names_what_depends_on_candidates() -> None:
    small, large = (estimate(of(MinHash()), rows, rows * 2000, 10, LIMITS) for rows in (1_000, 100_000))
    assert large.disk == 100 * small.disk == 100_000 * (128 + 32 * 20)
    assert large.candidates > 100_000 * 2000 and large.memory > small.memory
    assert small.deciding == 228 * 1_000 * 999 // 2 and large.deciding > 100 * (228 * 100_000)
    assert "100,000 documents: memory per task ≈" in str(large) and "228 bytes an edge" in str(large)
    exact = estimate(of(None), 1_000, 2_000_000, 10, LIMITS)
    assert (exact.disk, exact.candidates, exact.deciding) == (128_000, 0, 0) and "up to" not in str(exact)


@pytest.mark.parametrize(
    ("size", "files", "written"), [(1, 1, 1), (1, 65, 2), ((64 << 20) * 1025, 1, 2), ((64 << 20) * 1025, 65, 3)]
)
def test_rows_are_written_again_for_each_merge_and_each_level(size: int, files: int, written: int) -> None:
    assert passes(size, files, LIMITS) == written


def test_estimate_is_in_the_plan_and_in_the_journal_before_the_first_task(tmp_path: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", [{"text": f"one text {n}"} for n in range(50)])
    source = read_jsonl(tmp_path / "in", source="s")
    run_on(Outputs(deduplicate(source)), tmp_path / "store")
    near = deduplicate(source, method=MinHash(), name="near")
    (planned,) = (stage for stage in plan(Outputs(near), tmp_path / "store") if stage.name == "near")
    assert "50 documents: memory per task" in planned.needs and planned.needs in str(planned)
    store = Store(tmp_path / "store")
    (run,) = runs_in(store)
    events = list(events_of(store, run))
    (place,) = (place for place, event in enumerate(events) if event["event"] == "estimate")
    assert "50 documents" in events[place]["needs"]
    assert not any(event.get("job", "").startswith("deduplicate") for event in events[:place])
    (again,) = (stage for stage in plan(Outputs(near), tmp_path / "elsewhere") if stage.name == "near")
    assert again.needs == ""
