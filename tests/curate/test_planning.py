"""What `curate plan` says is what the run then does, and why; and it touches nothing."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from curate import Outputs, deduplicate, read_jsonl
from curate.digests import digest_file
from curate.inputs.files import StatIndex, find_files
from curate.planning.costs import Costs, Figures, costs_of
from curate.planning.differences import differences, input_changes, show
from curate.planning.plan import REUSED, TO_FINISH, TO_RUN, UNKNOWN, Plan, PlannedStage, plan
from curate.receipts import shard_folder
from curate.store import Store
from tests.curate.corpus import journal, run_on, sentence, tree, write_lines
from transforms.gopher_rules import GopherQuality
from transforms.outcome import Outcome, kept


@dataclass(frozen=True, slots=True)
class Setup:
    """A recipe of three chains, one of them after another, and a join of all: what an edit may change."""

    min_words: int = 8
    version: int = 1
    word: str = "a"


@dataclass(frozen=True)
class Stamp:
    """Changes nothing; `of_version` gives one of another version."""

    word: str = "a"

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("blake3",)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        return kept(batch)


def of_version(version: int, word: str = "a") -> Stamp:
    made: Stamp = type("Stamp", (Stamp,), {"version": version})(word)
    return made


def outputs(root: Path, setup: Setup) -> Outputs:
    low: dict[str, Any] = {"min_stop_words": 1, "max_mean_word_length": 20}
    first = read_jsonl(root / "one", source="one").keep("raw one")
    first = first.apply(of_version(setup.version, setup.word), name="first")
    first = first.keep("titles").apply(GopherQuality(min_words=setup.min_words, **low), name="judged")
    second = read_jsonl(root / "two", source="two").apply(Stamp(), name="second")
    return Outputs(all=deduplicate(first, second, name="unique"))


def write_sources(root: Path) -> Path:
    for source, first in (("one", 0), ("two", 100)):
        for number in range(3):
            write_lines(root / source / f"{number}.jsonl", [{"text": sentence(first + number)}])
    return root


def fingerprinted(root: Path, setup: Setup, store: Path) -> Plan:
    """Plan after the first pass over the files: what comes of a file is not known before it is hashed."""
    index = StatIndex(Store(store))
    for source in ("one", "two"):
        files = find_files(root / source, "**/*", "test")
        index.put({file: digest_file(root / source / file.path) for file in files if index.get(file) is None})
    return plan(outputs(root, setup), store)


def executed(store: Path) -> dict[str, set[str]]:
    """Return the name of each stage that ran → keys of the shards of its document-wise tasks, from the last journal."""
    ran: dict[str, set[str]] = {}
    current = ""
    for event in journal(store):
        if event["event"] == "stage begun":
            current = event["name"]
            ran[current] = set()
        elif event["event"] == "task" and event["job"] == current:
            ran[current].add(event["key"])
    return ran


WIDE = ("unique", "compact judged", "compact second")


def check(planned: Plan, store: Path) -> None:
    ran = executed(store)
    assert [stage.name for stage in planned if stage.state != REUSED] == list(ran)
    for stage in planned:
        if stage.state != REUSED and stage.name not in WIDE:
            assert set(stage.run) == ran[stage.name], stage.name
            assert stage.shards is not None and stage.shards - stage.done == len(stage.run)
            assert (stage.state == TO_FINISH) == (stage.done > 0)
        assert bool(stage.why) == (stage.state != REUSED)


def edit(root: Path, setup: Setup, draw: random.Random) -> Setup:
    """Change one thing: of the files, or of the configuration."""
    kind = draw.choice(["add", "change", "remove", "rename", "swap", "threshold", "version", "nothing"])
    files = sorted((root / draw.choice(["one", "two"])).glob("*.jsonl"))
    path, other = draw.choice(files), draw.choice(files)
    if kind == "add":
        write_lines(path.with_name(f"n{draw.randrange(1000)}.jsonl"), [{"text": sentence(draw.randrange(10**6))}])
    elif kind == "change":
        write_lines(path, [{"text": sentence(draw.randrange(10**6))}])
    elif kind == "remove" and len(files) > 1:
        path.unlink()
    elif kind == "rename":
        path.rename(path.with_name(f"r{draw.randrange(10**6)}.jsonl"))
    elif kind == "swap":
        one, two = path.read_bytes(), other.read_bytes()
        path.write_bytes(two)
        other.write_bytes(one)
    elif kind == "threshold":
        return replace(setup, min_words=draw.choice([7, 8, 9]))
    elif kind == "version":
        return replace(setup, version=draw.choice([1, 2]))
    return setup


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plan_after_any_edits_names_exactly_the_shards_that_the_run_makes(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    root, store, setup = write_sources(tmp_path / "in"), tmp_path / "store", Setup()
    for _ in range(6):
        planned = fingerprinted(root, setup, store)
        run_on(outputs(root, setup), store)
        check(planned, store)
        assert {stage.state for stage in fingerprinted(root, setup, store)} == {REUSED}
        for _ in range(draw.randrange(1, 3)):
            setup = edit(root, setup, draw)


def test_plan_of_a_stopped_run_names_what_is_left(tmp_path: Path) -> None:
    root, store = write_sources(tmp_path / "in"), tmp_path / "store"
    result = run_on(outputs(root, Setup()), store)
    made = {dataset.name: dataset for dataset in result.stages}
    shard = made["titles"].shards()[1]["key"]
    Store(store).remove(f"{shard_folder(shard)}/receipt.json")
    (stage,) = (stage for stage in fingerprinted(root, Setup(), store) if stage.state != REUSED)
    assert (stage.state, stage.run, stage.done, stage.shards) == (TO_FINISH, (shard,), 2, 3)
    assert stage.why == ("shards of it were removed from the store",)
    Store(store).remove(f"{made['judged'].folder}/manifest.json")
    (_, judged) = (stage for stage in fingerprinted(root, Setup(), store) if stage.state != REUSED)
    assert (judged.state, judged.run, judged.done, judged.shards) == (TO_FINISH, (), 3, 3)
    run_on(outputs(root, Setup()), store)
    assert {stage.state for stage in fingerprinted(root, Setup(), store)} == {REUSED}


# --- why -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory, memory: Path) -> tuple[Path, Path]:
    place = memory / "planning"
    root = write_sources(place / "in")
    run_on(outputs(root, Setup()), place / "store")
    return root, place / "store"


def why(planned: Plan) -> dict[str, tuple[str, ...]]:
    return {stage.name: stage.why for stage in planned if stage.state != REUSED}


def test_edited_threshold_and_version_are_named_with_old_and_new_value(lived: tuple[Path, Path]) -> None:
    root, store = lived
    found = why(plan(outputs(root, Setup(min_words=50)), store))
    assert found == {
        "judged": ("GopherQuality.min_words 8 → 50",),
        "compact judged": ("upstream `judged` changed",),
        "unique": ("upstream `compact judged` changed",),
    }
    found = why(plan(outputs(root, Setup(version=2, word="b")), store))
    assert list(found) == ["titles", "judged", "compact judged", "unique"]
    assert found["titles"] == ("Stamp.version 1 → 2", "Stamp.word a → b")
    assert found["judged"] == ("upstream `titles` changed",)


def test_updated_library_is_named_and_only_what_declares_it_runs_again(
    lived: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, store = lived
    installed = version("blake3")
    monkeypatch.setattr("curate.configuration.installed_version", lambda name: f"{version(name)}.post1")
    found = why(plan(outputs(root, Setup()), store))
    assert found["titles"] == found["second"] == (f"library blake3 {installed} → {installed}.post1",)
    assert "raw one" not in found and found["judged"][-1] == "upstream `titles` changed"


def test_changes_of_files_are_counted_and_named(tmp_path: Path, lived: tuple[Path, Path]) -> None:
    _, store = lived
    root = write_sources(tmp_path / "in")
    (root / "one" / "0.jsonl").unlink()
    write_lines(root / "one" / "1.jsonl", [{"text": "other"}])
    (root / "two" / "0.jsonl").rename(root / "two" / "z.jsonl")
    for number in range(5):
        write_lines(root / "one" / f"n{number}.jsonl", [{"text": sentence(number + 50)}])
    planned = plan(outputs(root, Setup()), store)
    raw = planned.stages[0]
    assert (raw.state, raw.key, raw.files) == (UNKNOWN, None, 7)
    assert raw.why == ("input: 5 files added (n0.jsonl, n1.jsonl, n2.jsonl and 2 more), 1 file removed (0.jsonl)",)
    copied = tmp_path / "store"
    shutil.copytree(store, copied)
    raw = fingerprinted(root, Setup(), copied).stages[0]
    assert raw.why == (
        "input: 5 files added (n0.jsonl, n1.jsonl, n2.jsonl and 2 more), 1 file changed (1.jsonl), "
        "1 file removed (0.jsonl)",
    )
    assert (raw.state, raw.done, raw.shards) == (TO_FINISH, 1, 7)
    second = next(stage for stage in fingerprinted(root, Setup(), copied) if stage.name == "second")
    assert second.why == ("input: 1 file renamed (0.jsonl → z.jsonl)",)


def test_first_run_says_that_nothing_of_the_name_is_there(tmp_path: Path) -> None:
    root = write_sources(tmp_path / "in")
    planned = plan(outputs(root, Setup()), tmp_path / "store")
    assert {stage.why for stage in planned} == {("nothing of this name is in the store",)}
    assert planned.hashed == sum(path.stat().st_size for path in root.rglob("*.jsonl"))
    assert str(planned).endswith(
        f"in all: 7 unknown until hashed; 0 bytes to read; {planned.hashed:,} bytes to hash first"
    )
    size = sum(path.stat().st_size for path in (root / "one").iterdir())
    assert planned.stages[0].lines()[0].endswith(f"unknown until hashed: 3 files, {size:,} bytes")
    assert not (tmp_path / "store").exists()


FIELDS: dict[str, Any] = {
    "limit": 5,
    "share": {"decimal": "0.5"},
    "words": {"set": ["a", "b"]},
    "list": {"file": "0123456789abcdef"},
}


def described(**changes: Any) -> dict[str, Any]:
    transform = {"class": "Extract", "version": 1, "libraries": {"trafilatura": "2.2"}, "fields": FIELDS}
    step = {"name": "Extract", "transform": {**transform, **changes}}
    return {"operation": "documents", "reader": None, "steps": [step, {"name": "Second", "transform": transform}]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, ["Extract.version 1 → 2"]),
        ({"libraries": {"trafilatura": "2.3"}}, ["library trafilatura 2.2 → 2.3"]),
        ({"libraries": {}}, ["library trafilatura 2.2 → None"]),
        ({"fields": {**FIELDS, "share": {"decimal": "0.25"}}}, ["Extract.share 0.5 → 0.25"]),
        ({"fields": {**FIELDS, "words": {"set": ["b", "c"]}}}, ["Extract.words without a, with c"]),
        (
            {"fields": {**FIELDS, "list": {"file": "fedcba98765432"}}},
            ["Extract.list file 0123456789ab → file fedcba987654"],
        ),
        ({"fields": {**FIELDS, "new": None}}, ["Extract.new not there → None"]),
        ({"class": "Other"}, ["Extract Extract → Other"]),
    ],
)
def test_each_kind_of_change_of_a_transform_is_named(changes: Mapping[str, Any], said: list[str]) -> None:
    assert differences(described(), described(**changes)) == said


def test_steps_added_removed_and_other_operations_are_named() -> None:
    old = described()
    new = {**old, "steps": [{"name": "First", "transform": {"class": "First"}}, old["steps"][1]]}
    assert differences(old, new) == ["step Extract removed", "step First added"]
    assert differences(old, {"operation": "compact"}) == ["operation documents → compact"]
    wide = [
        {"operation": "x", "class": "X", "fields": {"list": [1, n], "map": {"map": {"a": n, **more}}}}
        for n, more in ((1, {}), (2, {"b": 1}))
    ]
    assert differences(*wide) == ["X.list[1] 1 → 2", "X.map['a'] 1 → 2", "X.map['b'] not there → 1"]
    assert len(show("x" * 200)) == 60 and show("") == "''" and show({"hex": "00" * 20}).startswith("hex 00")


def test_files_not_hashed_are_not_said_to_have_changed() -> None:
    assert input_changes({"a": "1", "b": "2"}, {"a": None, "b": "3"}) == ["input: 1 file changed (b)"]
    assert input_changes({"a": "1"}, {"a": None}) == []


# --- reads only, and costs -------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_plan_works_on_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    root, store = write_sources(tmp_path / "in"), tmp_path / "store"
    run_on(outputs(root, Setup()), store)
    folders = [path for path in (store, *store.rglob("*")) if path.is_dir()]
    for path in folders:
        path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert {stage.state for stage in plan(outputs(root, Setup()), store)} == {REUSED}
    finally:
        for path in folders:
            path.chmod(stat.S_IRWXU)


def test_plan_hashes_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, store = write_sources(tmp_path / "in"), tmp_path / "store"
    run_on(outputs(root, Setup()), store)
    write_lines(root / "one" / "new.jsonl", [{"text": sentence(7)}])
    before = tree(store), sorted(path.as_posix() for path in store.rglob("*"))

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("plan only reads")

    for name in ("publish", "publish_bytes", "put", "appender", "spool", "remove", "digest"):
        monkeypatch.setattr(Store, name, refuse)
    planned = plan(outputs(root, Setup(min_words=9)), store, workers=2)
    assert planned.stages[0].state == UNKNOWN and planned.hashed == (root / "one" / "new.jsonl").stat().st_size
    assert (tree(store), sorted(path.as_posix() for path in store.rglob("*"))) == before


def test_cost_comes_from_stages_of_the_same_kind_and_is_said_to_be_unknown_without(
    lived: tuple[Path, Path], tmp_path: Path
) -> None:
    root, store = lived
    planned = {stage.name: stage for stage in plan(outputs(root, Setup(min_words=9)), store, workers=4)}
    assert planned["titles"].cost is None  # nothing to do
    judged = planned["judged"].cost
    assert judged is not None and judged.cpu_seconds and judged.seconds and judged.written
    assert judged.seconds == pytest.approx(judged.cpu_seconds / 3)  # three shards for four workers
    unknown = plan(outputs(root, Setup()), tmp_path / "empty", workers=4)
    assert "no earlier figures" not in str(unknown.stages[0])  # not known before it is hashed
    other = Outputs(read_jsonl(root / "one", source="one").apply(Drop(), name="dropped"))
    (dropped,) = plan(other, store, workers=1)
    assert "no earlier figures" in str(dropped) and dropped.to_json()["cost"]["seconds"] is None
    assert "no earlier figures" in str(plan(other, store, workers=1)).splitlines()[-1]


@dataclass(frozen=True, slots=True)
class Drop:
    """Keeps all; of a kind that never ran."""

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        return kept(batch)


def test_figures_scale_with_bytes_and_are_none_without_any() -> None:
    figures = Figures(tasks=2, seconds=6.0, bytes=300, input=300, output=120, written=150)
    assert (figures.seconds_for(100), figures.written_for(100), figures.output_for(100)) == (2.0, 50, 40)
    assert (Figures().seconds_for(100), Figures().written_for(100), Figures().output_for(100)) == (None, None, 100)
    assert Figures(tasks=1, seconds=3.0, input=30).seconds_for(10) == 1.0  # tasks that say no bytes


def test_costs_add_up_over_runs_that_were_stopped(lived: tuple[Path, Path]) -> None:
    found = costs_of(Store(lived[1]))
    assert isinstance(found, Costs) and sum(found.begun.values()) > 0
    assert set(found.kinds) >= {"read jsonl, Stamp", "GopherQuality", "compact", "deduplicate"}
    assert found.kinds["read jsonl, Stamp"].bytes == found.kinds["read jsonl, Stamp"].input > 0


def test_plan_is_printed_and_given_as_json(lived: tuple[Path, Path]) -> None:
    root, store = lived
    planned = plan(outputs(root, Setup(min_words=9)), store, workers=2)
    said = str(planned).splitlines()
    assert said[-1].startswith("in all: 4 reused, 3 to run;") and "with 2 workers" in said[-1]
    value = json.loads(json.dumps(planned.to_json()))
    stage = value["stages"][[entry["name"] for entry in value["stages"]].index("judged")]
    assert (stage["state"], stage["shards"], len(stage["run"])) == (TO_RUN, 3, 3)
    assert isinstance(planned.stages[0], PlannedStage)
