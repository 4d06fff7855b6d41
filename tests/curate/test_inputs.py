"""What a change of inputs or configuration reruns, by the tasks that the journal names: that, and nothing else."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curate import Outputs, deduplicate, read_files, read_jsonl, read_parquet
from curate.configuration import ConfigurationError
from curate.datasets import Dataset
from curate.recipes.recipe import load_recipe
from curate.run import Result, run
from curate.running.jobs import Item, Job, TaskError
from curate.running.runners import Attempt, run_item
from tests.curate.corpus import (
    METHOD,
    changed,
    ledger,
    read_web,
    run_on,
    sentence,
    small,
    staged,
    tasks,
    texts,
    tree,
    write_corpus,
    write_lines,
)
from transforms.gopher_rules import GopherQuality
from transforms.outcome import Outcome, kept
from transforms.user_function import EditText

DEDUPLICATION = {
    "digests": "digests",
    "equal texts": "exact",
    "keep order": "span",
    **{job: job for job in ("bands", "candidates", "pairs", "shingles", "verify", "decide", "resolve")},
}
JOINED = 2
"""Shards that deduplication reads: compaction joins those of each source."""


@pytest.fixture
def lived_in(raw: Path, undisturbed: Result, tmp_path: Path) -> tuple[Path, Path]:
    """A copy of the corpus and of the store of its recipe, both elsewhere than they were."""
    inputs, store = tmp_path / "elsewhere", tmp_path / "store"
    shutil.copytree(raw, inputs)
    shutil.copytree(undisturbed.folder.parent, store)
    return inputs, store


def rerun(inputs: Path, store: Path) -> tuple[Result, dict[str, list[str]]]:
    result = run_on(small(inputs), store)
    return result, tasks(store)


def stage_of(result: Result, name: str) -> Dataset:
    """Return what the stage of this name made."""
    (found,) = (stage for stage in result.stages if stage.name == name)
    return found


def joined(name: str) -> dict[str, list[str]]:
    """Return the task that joins the shards of a stage."""
    return {f"compact {name}": ["group 0"]}


def whole_operation() -> dict[str, list[str]]:
    """Return the tasks of deduplication, and of the stage after it."""
    found = {}
    for job, name in DEDUPLICATION.items():
        per_shard = job in ("digests", "bands", "shingles", "resolve")
        found[f"deduplicate: {job}"] = [f"{name} {unit}" for unit in range(JOINED if per_shard else 1)]
    return {**found, "deduplicate": [f"apply {unit}" for unit in range(JOINED)]}


def without_case(done: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return `done` without the stage after deduplication, all of whose shards must be there."""
    assert len(done["case"]) == JOINED
    return {job: labels for job, labels in done.items() if job != "case"}


def multiset(result: Result) -> dict[str, Any]:
    return {name: dataset.manifest["texts"] for name, dataset in result.outputs.items()}


def test_store_and_inputs_moved_elsewhere_rerun_nothing(lived_in: tuple[Path, Path], undisturbed: Result) -> None:
    result, done = rerun(*lived_in)
    assert done == {}
    assert result.digest == undisturbed.digest


def test_file_added_runs_its_shard_and_what_sees_all_documents(
    lived_in: tuple[Path, Path], undisturbed: Result
) -> None:
    inputs, store = lived_in
    write_lines(inputs / "web" / "new.jsonl", [{"lang": "en", "text": sentence(50)}])
    result, done = rerun(inputs, store)
    assert without_case(done) == {"apply web": ["new.jsonl"], **joined("apply web"), **whole_operation()}
    assert result.stages[0].manifest == undisturbed.stages[0].manifest
    old = {shard["key"] for shard in stage_of(undisturbed, "apply web").shards()}
    assert old < {shard["key"] for shard in stage_of(result, "apply web").shards()}
    assert texts(result.outputs["texts"]).count(sentence(50)) == 1


def test_file_added_to_a_keyed_source_runs_the_search_for_repeats_too(lived_in: tuple[Path, Path]) -> None:
    inputs, store = lived_in
    write_lines(inputs / "books" / "new.jsonl", [{"isbn": "b60", "lang": "en", "text": sentence(60)}])
    _, done = rerun(inputs, store)
    searched = {"books": ["new.jsonl"], "books: repeats": ["files from 0", "partition 0"]}
    assert without_case(done) == {**searched, **joined("books"), **whole_operation()}


def test_file_removed_runs_what_sees_all_documents(lived_in: tuple[Path, Path], undisturbed: Result) -> None:
    inputs, store = lived_in
    (inputs / "web" / "x.jsonl").unlink()
    result, done = rerun(inputs, store)
    assert without_case(done) == {**joined("apply web"), **whole_operation()}
    assert stage_of(result, "apply web").shards() == stage_of(undisturbed, "apply web").shards()[1:]


def test_file_renamed_runs_its_shard_and_what_sees_all_documents_and_leaves_the_texts(
    lived_in: tuple[Path, Path], undisturbed: Result
) -> None:
    inputs, store = lived_in
    (inputs / "web" / "x.jsonl").rename(inputs / "web" / "w.jsonl")
    result, done = rerun(inputs, store)
    assert without_case(done) == {"apply web": ["w.jsonl"], **joined("apply web"), **whole_operation()}
    assert multiset(result) == multiset(undisturbed)


def test_files_swapped_run_both_shards_and_leave_the_texts(lived_in: tuple[Path, Path], undisturbed: Result) -> None:
    inputs, store = lived_in
    x, y = inputs / "web" / "x.jsonl", inputs / "web" / "y.jsonl"
    x.rename(inputs / "away")
    y.rename(x)
    (inputs / "away").rename(y)
    result, done = rerun(inputs, store)
    assert without_case(done) == {"apply web": ["x.jsonl", "y.jsonl"], **joined("apply web"), **whole_operation()}
    assert multiset(result) == multiset(undisturbed)


def test_byte_changed_in_a_file_runs_its_shard(lived_in: tuple[Path, Path]) -> None:
    inputs, store = lived_in
    path = inputs / "web" / "x.jsonl"
    path.write_bytes(path.read_bytes().replace(b"number3 ", b"number9 "))
    _, done = rerun(inputs, store)
    assert done["apply web"] == ["x.jsonl"] and "books" not in done


def test_texts_and_dropped_texts_do_not_depend_on_how_files_are_cut(tmp_path: Path) -> None:
    """Which of two different texts stays depends on the texts alone; only ids and origins follow the files."""
    lines = [{"lang": "en", "text": text} for n in range(12) for text in (sentence(n), changed(sentence(n)))]
    stays = []
    for cut, parts in enumerate(([lines], [lines[:7], lines[7:]], [lines[::-1]], [lines[::2], lines[1::2]])):
        root = tmp_path / f"in{cut}"
        for part, rows in enumerate(parts):
            write_lines(root / "web" / f"{part}.jsonl", rows)
        result = run_on(Outputs(texts=deduplicate(read_web(root), method=METHOD)), tmp_path / f"store{cut}")
        stays.append((sorted(texts(result.outputs["texts"])), multiset(result)))
    assert len(stays[0][0]) == 12
    assert all(found == stays[0] for found in stays)


def disturb(root: Path, draw: random.Random) -> None:
    """Add, remove, rename, swap, cut, glue or edit files of both sources, one thing of these."""
    source = draw.choice(["books", "web"])
    files = sorted(path for path in (root / source).rglob("*.jsonl*") if path.is_file())
    path, other = draw.choice(files), draw.choice(files)
    number = draw.randrange(10_000)
    new = {"isbn": f"n{number}", "lang": "en", "text": draw.choice([sentence(number), sentence(number % 40), ""])}
    kind = draw.choice(["add", "add line", "remove", "rename", "swap", "touch"])
    if kind == "add":
        write_lines(root / source / f"new{number}.jsonl", [new])
    elif kind == "add line" and path.suffix == ".jsonl":
        path.write_bytes(path.read_bytes() + json.dumps(new).encode() + b"\n")
    elif kind == "remove" and len(files) > 1:
        path.unlink()
    elif kind == "rename":
        path.rename(path.with_name(f"{number}{''.join(path.suffixes)}"))
    elif kind == "swap" and path != other and path.suffixes == other.suffixes:
        content = path.read_bytes()
        path.write_bytes(other.read_bytes())
        other.write_bytes(content)
    else:
        path.touch()


@pytest.mark.parametrize("seed", [2])
def test_runs_that_reuse_a_store_after_any_changes_equal_runs_from_scratch(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    inputs, kept = write_corpus(tmp_path / "in"), tmp_path / "kept"
    for step in range(3):
        for _ in range(draw.randrange(1, 4)):
            disturb(inputs, draw)
        fresh = tmp_path / f"fresh{step}"
        again, anew = run_on(small(inputs), kept), run_on(small(inputs), fresh)
        assert again.digest == anew.digest, f"step {step}"
        made, there = tree(fresh), tree(kept)
        assert {name: there[name] for name in made} == made


# --- configuration ---------------------------------------------------------------------------------------------------


def filtered(root: Path, **settings: Any) -> Outputs:
    """Return two chains, the second of which the settings change."""
    first = read_web(root).apply(EditText(str.title, reason="case", version=1), name="first")
    low = {"min_words": 8, "min_stop_words": 1, "max_mean_word_length": 20}
    second = read_jsonl(root / "books", source="books", columns={"language": "lang"})
    second = second.keep("raw").apply(GopherQuality(**{**low, **settings}), name="second")
    return Outputs(both=deduplicate(first, second))


def test_threshold_edited_runs_its_own_stage_and_those_after_it(raw: Path, tmp_path: Path) -> None:
    first = run_on(filtered(raw), tmp_path)
    second = run_on(filtered(raw, min_words=46), tmp_path)
    done = tasks(tmp_path)
    wide = {"deduplicate: digests", "deduplicate: equal texts", "deduplicate"}
    assert set(done) == {"second", "compact second", *wide}
    assert len(done["second"]) == 2
    assert staged(second, "second").rows < staged(first, "second").rows
    run_on(filtered(raw), tmp_path)
    assert tasks(tmp_path) == {}


@dataclass(frozen=True, slots=True)
class DropListed:
    """Drops texts that hold a word of a file."""

    words: Path

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        return schema

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        listed = self.words.read_text().split()
        stays = [not any(word in text for word in listed) for text in batch.column("text").to_pylist()]
        dropped = [
            {"id": identity, "transform": "DropListed", "reason": "listed"}
            for identity, stay in zip(batch.column("id").to_pylist(), stays, strict=True)
            if not stay
        ]
        return kept(batch.filter(pa.array(stays, pa.bool_())), dropped=dropped)


def test_file_that_a_transform_names_stands_for_its_content(raw: Path, tmp_path: Path) -> None:
    def with_list(path: Path) -> Outputs:
        listed = read_web(raw).keep("raw").apply(DropListed(path), name="listed")
        return Outputs(listed=listed, other=read_web(raw).apply(EditText(str.title, reason="case", version=1)))

    words, moved = tmp_path / "words", tmp_path / "moved"
    words.write_text("number30")
    store = tmp_path / "store"
    before = run_on(with_list(words), store)
    words.rename(moved)
    assert run_on(with_list(moved), store).digest == before.digest
    assert tasks(store) == {}
    moved.write_text("number31")
    after = run_on(with_list(moved), store)
    assert set(tasks(store)) == {"listed"}
    assert after.outputs["listed"].key != before.outputs["listed"].key
    assert after.outputs["other"].key == before.outputs["other"].key


def test_file_that_a_transform_names_and_that_is_missing_is_an_error_before_any_task(raw: Path, tmp_path: Path) -> None:
    outputs = Outputs(read_web(raw).apply(DropListed(tmp_path / "nowhere")))
    with pytest.raises(ConfigurationError, match=r"nowhere: No such file .* a transform names this file"):
        run_on(outputs, tmp_path / "store")
    assert not (tmp_path / "store" / "shards").exists()


RECIPE = """
from pathlib import Path
from curate import Outputs, read_jsonl, recipe
from transforms.user_function import KeepIf

SHORTEST = {shortest}

def long_enough(row):
    return len(row["text"]) {comparison} SHORTEST

@recipe
def judged(root: Path) -> Outputs:
    web = read_jsonl(root, source="web", columns={{"language": "lang"}}).keep("raw")
    return Outputs(judged=web.apply(KeepIf(long_enough, reason="short"{further}), name="judged"))
"""


@pytest.mark.parametrize(
    ("edits", "reruns"),
    [
        ({}, False),
        ({"comparison": ">"}, True),
        ({"shortest": "100"}, True),
        ({"further": ", version=1"}, True),
    ],
)
def test_source_of_a_user_function_edited_runs_its_stage(
    raw: Path, tmp_path: Path, edits: dict[str, str], reruns: bool
) -> None:
    def judge(**fields: str) -> None:
        path = tmp_path / f"recipe{len(list(tmp_path.iterdir()))}.py"
        path.write_text(RECIPE.format(**{"shortest": "10", "comparison": ">=", "further": "", **fields}))
        loaded, module = load_recipe(str(path))
        run(loaded(raw / "web"), tmp_path / "store", runner="local", modules=[module])

    judge()
    judge(**edits)
    assert set(tasks(tmp_path / "store")) == ({"judged"} if reruns else set())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import nothing_of_this_name", "line 2: ModuleNotFoundError: No module named"),
        ("recipe(", "line 2: SyntaxError: "),
        ("raise ValueError('wrong')", "line 2: ValueError: wrong"),
    ],
)
def test_recipe_that_cannot_be_imported_is_a_usage_error_with_its_line(
    tmp_path: Path, source: str, message: str
) -> None:
    path = tmp_path / "broken.py"
    path.write_text(f"from curate import recipe\n{source}\n")
    with pytest.raises(ConfigurationError, match=f"broken.py, {message}"):
        load_recipe(str(path))


# --- files that are not what they were -------------------------------------------------------------------------------


@dataclass(frozen=True)
class MeddlingRunner:
    """Changes a file after it was fingerprinted and before it is read."""

    meddle: Callable[[], object]

    def run(self, job: Job, items: Sequence[Item]) -> Iterator[Attempt]:
        for item in items:
            if job.name.startswith("read"):
                self.meddle()
            yield run_item(job, item)


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"text": "one more"}\n')


def test_file_that_changes_between_fingerprint_and_reading_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.jsonl"
    write_lines(path, [{"text": sentence(1)}])
    outputs = Outputs(texts=read_jsonl(tmp_path / "in", source="s"))
    with pytest.raises(TaskError, match=r"read s, a\.jsonl: InputError: .* it changed while the recipe ran"):
        run_on(outputs, tmp_path / "store", MeddlingRunner(lambda: append(path)))
    assert not list((tmp_path / "store").glob("*/manifest.json"))
    assert not list((tmp_path / "store").glob("shards/*/*"))
    assert texts(run_on(outputs, tmp_path / "store").outputs["texts"]) == [sentence(1), "one more"]


def test_parquet_file_that_changes_between_fingerprint_and_reading_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"text": ["one"]}), path)
    outputs = Outputs(texts=read_parquet(tmp_path / "in", source="s"))
    runner = MeddlingRunner(lambda: pq.write_table(pa.table({"text": ["two"]}), path))
    with pytest.raises(TaskError, match="it changed while the recipe ran"):
        run_on(outputs, tmp_path / "store", runner)


def test_file_that_goes_after_it_was_fingerprinted_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.jsonl"
    write_lines(path, [{"text": "x"}])
    with pytest.raises(TaskError, match=r"FileNotFoundError.*a\.jsonl"):
        run_on(
            Outputs(read_jsonl(tmp_path / "in", source="s")),
            tmp_path / "store",
            MeddlingRunner(path.unlink),
        )


@pytest.mark.parametrize(("root", "pattern", "message"), [
    ("nowhere", "*.txt", "nowhere is not a folder"),
    ("in", "*.text", r"no file below .* matches '\*\.text'"),
])  # fmt: skip
def test_wrong_path_is_an_error_before_any_work(tmp_path: Path, root: str, pattern: str, message: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("x")
    with pytest.raises(ConfigurationError, match=message):
        run_on(Outputs(read_files(tmp_path / root, pattern, source="s")), tmp_path / "store")
    assert not (tmp_path / "store" / "shards").exists()


def test_parquet_file_without_a_declared_column_is_an_error_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"content": ["x"], "n": [1]}), tmp_path / "in" / "a.parquet")
    with pytest.raises(ConfigurationError, match=r"has no one column text; its columns are content, n"):
        run_on(Outputs(read_parquet(tmp_path / "in", source="s")), tmp_path / "store")


def test_one_source_name_for_two_roots_is_an_error_before_any_work(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_lines(tmp_path / folder / "a.jsonl", [{"text": folder}])
    first, second = (read_jsonl(tmp_path / folder, source="s") for folder in ("one", "two"))
    with pytest.raises(
        ConfigurationError, match=r"source 's' is read from .*one and from .*two: records of both could"
    ):
        run_on(Outputs(one=first, two=second), tmp_path / "store")
    assert not (tmp_path / "store").exists()
    run_on(
        Outputs(one=first.keep("again"), more=first.apply(EditText(str.title, "case", version=1))), tmp_path / "store"
    )


# --- records that two files hold -------------------------------------------------------------------------------------


def keyed(root: Path, on_clash: str = "error") -> Outputs:
    return Outputs(texts=read_jsonl(root, source="s", columns={"key": "k"}, on_clash=on_clash))


@pytest.mark.parametrize("files", [1, 2])
def test_record_that_comes_twice_is_dropped_the_second_time(tmp_path: Path, files: int) -> None:
    rows = [{"k": "1", "text": "one"}, {"k": "2", "text": "two"}], [{"k": "1", "text": "one"}, {"k": 3, "text": "x"}]
    parts = rows if files == 2 else [[*rows[0], *rows[1]]]
    for number, part in enumerate(parts):
        write_lines(tmp_path / "in" / f"{number}.jsonl", part)
    (texts_,) = run_on(keyed(tmp_path / "in"), tmp_path / "store").outputs.values()
    assert texts(texts_) == ["one", "two", "x"]
    (row,) = ledger(texts_)
    assert row["reason"] == "same record"
    assert row["origin"]["uri"] == f"{files - 1}.jsonl"
    assert row["id"] == next(texts_.batches(["id"])).column("id")[0].as_py()


@pytest.mark.parametrize("files", [1, 2])
def test_different_records_with_one_key_are_an_error_that_names_both(tmp_path: Path, files: int) -> None:
    rows = [{"k": "1", "text": "one"}], [{"k": "1", "text": "another"}]
    for number, part in enumerate(rows if files == 2 else [[*rows[0], *rows[1]]]):
        write_lines(tmp_path / "in" / f"{number}.jsonl", part)
    message = r"0\.jsonl and 1\.jsonl hold different" if files == 2 else r"have the key b'1'; the second is in 0\.jsonl"
    with pytest.raises(TaskError, match=message):
        run_on(keyed(tmp_path / "in"), tmp_path / "store")
    assert not list((tmp_path / "store").glob("*/manifest.json"))


def test_different_records_with_one_key_are_told_apart_by_place_when_asked_for(tmp_path: Path) -> None:
    for number, part in enumerate([[{"k": "1", "text": "one"}], [{"k": "1", "text": "another"}]]):
        write_lines(tmp_path / "in" / f"{number}.jsonl", part)
    (found,) = run_on(keyed(tmp_path / "in", "place"), tmp_path / "store").outputs.values()
    assert texts(found) == ["one", "another"]
    assert len({identity for batch in found.batches() for identity in batch.column("id").to_pylist()}) == 2
    assert ledger(found) == []


def test_record_of_three_files_stays_once(tmp_path: Path) -> None:
    for number in range(3):
        write_lines(
            tmp_path / "in" / f"{number}.jsonl", [{"k": "1", "text": "one"}, {"k": f"own{number}", "text": "x"}]
        )
    (found,) = run_on(keyed(tmp_path / "in"), tmp_path / "store").outputs.values()
    assert texts(found) == ["one", "x", "x", "x"]
    assert [row["origin"]["uri"] for row in ledger(found)] == ["1.jsonl", "2.jsonl"]
