"""Repeated lines, paragraphs, spans and URLs over a corpus, held against definitions in plain Python."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3

from curate import (
    Column,
    Outputs,
    deduplicate,
    deduplicate_against,
    deduplicate_parts,
    deduplicate_spans,
    deduplicate_urls,
    exchange,
    field,
    read_jsonl,
    reference,
    tokenize,
)
from curate import Dataset as Described
from curate.accounting.guard_rail import TooManyRemovedError
from curate.cluster.runner import RayRunner
from curate.configuration import ConfigurationError
from curate.datasets import Dataset, datasets_in
from curate.exchange import LIMITS
from curate.recipes.compiling import compile_stages
from curate.recipes.show import show_outputs
from curate.repeated.parts import _frequent
from curate.repeated.spans import _shared
from curate.store import Store
from curate.upkeep.compaction import Compact
from curate.upkeep.trace import replay, trace_token
from curate.upkeep.verify import verify
from tests.curate.corpus import ShuffledRunner, ledger, run_on, texts, tree, write_lines
from tests.curate.token_corpus import write_tokenizer
from transforms.tokens import Tokenizer

Row = Mapping[str, Any]
WORDS = 6
COLUMNS: Mapping[str, str | Column] = {"key": "name", "url": "url", "stars": Column("stars", "int64")}


def rows(count: int = 60, seed: int = 3) -> list[Row]:
    """Return documents of lines that others have, too; of some the whole text is that of another."""
    draw = random.Random(seed)
    shared = [f"shared line number {n}, größer as ever" for n in range(8)]
    made: list[Row] = []
    for number in range(count):
        own = [f"own {number} {n} " + " ".join(draw.choice("abcd") for _ in range(9)) for n in range(3)]
        lines = [draw.choice([*shared, *own, "short", ""]) for _ in range(draw.randrange(1, 9))]
        text = "\n".join(lines) if number % 9 else made[-1]["text"] if made else "the first of all of them"
        url = draw.choice(
            [None, "", f"HTTP://Example.org:80/{number % 11}?utm_source=x", f"https://example.org/{number}"]
        )
        made.append({"name": f"n{number}", "text": text, "url": url, "stars": draw.randrange(3)})
    return made


def read(root: Path, given: Sequence[Row], files: int, seed: int = 1, source: str = "s") -> Described:
    shuffled = list(given)
    random.Random(seed).shuffle(shuffled)
    for number in range(files):
        write_lines(root / source / f"{number}.jsonl", [dict(row) for row in shuffled[number::files]])
    return read_jsonl(root / source, source=source, columns=COLUMNS)


@pytest.fixture(params=["whole", "small pieces"])
def pieces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Exchanges and shards as they are, or so small that there are many of everything."""
    if request.param == "small pieces":
        monkeypatch.setattr("curate.recipes.compiling.Compact", lambda: Compact(target=1))
        limits = replace(LIMITS, partition_bytes=900, most_partitions=3, block_bytes=300, fan_in=2, memory=2000)
        monkeypatch.setattr(exchange, "LIMITS", limits)
        monkeypatch.setattr("curate.parts.BATCH_BYTES", 300)
        monkeypatch.setattr("curate.repeated.parts.ROWS_AT_ONCE", 5)
        monkeypatch.setattr("curate.repeated.spans.ROWS_AT_ONCE", 5)
    return str(request.param)


def documents_of(dataset: Dataset) -> dict[bytes, Row]:
    return {row["id"]: row for batch in dataset.batches() for row in batch.to_pylist()}


def in_order(came: Mapping[bytes, Row]) -> list[Row]:
    """Return documents in the keep order of `prefer=()`: by the digest of the text, then by id."""
    return sorted(came.values(), key=lambda row: (blake3(row["text"].encode()).digest(16), row["id"]))


def lines_by_definition(came: Mapping[bytes, Row], known: Sequence[str] = (), least: int = 20) -> dict[bytes, str]:
    """Return the texts without the lines that come again, of those of which anything is left."""
    seen, left = {line.strip() for text in known for line in text.split("\n")}, {}
    for row in in_order(came):
        kept = []
        for line in row["text"].split("\n"):
            if len(line.strip()) < least or line.strip() not in seen:
                kept.append(line)
            seen.add(line.strip())
        if kept == row["text"].split("\n") or "".join(kept).strip():
            left[row["id"]] = "\n".join(kept)
    return left


def frequent_by_definition(came: Mapping[bytes, Row], more_than: int, least: int = 20) -> set[str]:
    counts = Counter(line.strip() for row in came.values() for line in row["text"].split("\n"))
    return {line for line, count in counts.items() if count > more_than and len(line) >= least}


@pytest.mark.usefixtures("pieces")
def test_lines_that_come_again_go_and_their_characters_are_counted(tmp_path: Path) -> None:
    source = read(tmp_path, rows(), 3)
    unique = deduplicate_parts(source, unit="line", prefer=())
    result = run_on(Outputs(before=source, all=unique), tmp_path / "store")
    came, stays = documents_of(result.outputs["before"]), documents_of(result.outputs["all"])
    wanted = lines_by_definition(came)
    # a text whose last line goes loses the line breaks before it, too
    assert {i: row["text"].rstrip("\n") for i, row in stays.items()} == {i: t.rstrip("\n") for i, t in wanted.items()}
    cut = {row["id"]: row for row in ledger(result.outputs["all"], "edit")}
    assert {row["reason"] for row in cut.values()} == {"repeated lines"}
    for identity, row in stays.items():
        edit = cut.get(identity, {"cut": 0, "inserted": 0})
        assert len(came[identity]["text"]) + edit["inserted"] == len(row["text"]) + edit["cut"]
    gone = {row["id"]: row["reason"] for row in ledger(result.outputs["all"], "dropped")}
    assert set(gone) | set(stays) == set(came) and set(gone.values()) == {"nothing but repeated lines"}
    assert verify(tmp_path / "store").problems == []


@pytest.mark.usefixtures("pieces")
def test_lines_seen_more_often_than_allowed_go_everywhere(tmp_path: Path) -> None:
    source = read(tmp_path, rows(), 3)
    result = run_on(Outputs(before=source, all=deduplicate_parts(source, unit="line", more_than=4)), tmp_path / "store")
    came = documents_of(result.outputs["before"])
    frequent = frequent_by_definition(came, 4)
    after = Counter(line.strip() for text in texts(result.outputs["all"]) for line in text.split("\n"))
    assert frequent and not frequent & set(after)
    before = Counter(line.strip() for row in came.values() for line in row["text"].split("\n"))
    assert all(after[line] == count for line, count in before.items() if line not in frequent and len(line) >= 20)


def windows_of(text: str) -> list[tuple[int, int, str]]:
    """Return the runs of `WORDS` words, as start, end and characters."""
    spans, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        spans.append((place, place + len(word)))
        place += len(word)
    pairs = zip(spans, spans[WORDS - 1 :], strict=False)
    return [(first[0], last[1], text[first[0] : last[1]]) for first, last in pairs]


def spans_by_definition(came: Mapping[bytes, Row]) -> dict[bytes, set[int]]:
    """Return the code points that go of each text: those of windows of which an equal one came before."""
    first: dict[str, tuple[bytes, int]] = {}
    goes: dict[bytes, set[int]] = {identity: set() for identity in came}
    for row in in_order(came):
        for start, end, words in windows_of(row["text"]):
            owner, place = first.setdefault(words, (row["id"], start))
            if owner != row["id"] or place + len(words) <= start:
                goes[row["id"]] |= set(range(start, end))
    return goes


def plain_rows(count: int = 50, seed: int = 5) -> list[Row]:
    """Return documents of plain words with passages that others have too, some twice, touching each other."""
    draw = random.Random(seed)
    passages = [" ".join(f"p{n}w{i}" for i in range(draw.randrange(WORDS - 1, 15))) for n in range(6)]
    made: list[Row] = []
    for number in range(count):
        pieces = [
            draw.choice([*passages, f"own{number} é{draw.randrange(9)}", "so so so so so so so so so so so so so"])
        ]
        pieces += [draw.choice([*passages, f"o{number}"]) for _ in range(draw.randrange(6))]
        made.append({"name": f"n{number}", "text": " ".join(pieces), "url": None, "stars": 1})
    return made


@pytest.mark.usefixtures("pieces")
def test_spans_that_come_again_go_as_defined(tmp_path: Path) -> None:
    source = read(tmp_path, plain_rows(), 3)
    unique = deduplicate_spans(source, words=WORDS, prefer=())
    result = run_on(Outputs(before=source, all=unique), tmp_path / "store")
    came, stays = documents_of(result.outputs["before"]), documents_of(result.outputs["all"])
    goes = spans_by_definition(came)
    left = {i: "".join(c for n, c in enumerate(row["text"]) if n not in goes[i]) for i, row in came.items()}
    found = {identity: row["text"].split() for identity, row in stays.items()}
    assert found == {identity: text.split() for identity, text in left.items() if text.strip()}
    edits = {row["id"]: row["cut"] for row in ledger(result.outputs["all"], "edit")}
    dropped = {row["id"] for row in ledger(result.outputs["all"], "dropped")}
    assert edits == {i: len(goes[i]) for i in came if goes[i] and i not in dropped}
    assert dropped | set(stays) == set(came) and dropped
    assert verify(tmp_path / "store").problems == []


def test_documents_own_words_are_no_repeats_of_themselves_and_spans_end_at_documents(tmp_path: Path) -> None:
    one = " ".join(f"word{n}" for n in range(40))
    left, right = " ".join(f"l{n}" for n in range(WORDS - 1)), " ".join(f"r{n}" for n in range(WORDS - 1))
    given = [one, "a a a a a a", left, right, f"{left} {right}"]
    made = [{"name": f"n{n}", "text": text, "url": None, "stars": 0} for n, text in enumerate(given)]
    result = run_on(Outputs(all=deduplicate_spans(read(tmp_path, made, 1), words=WORDS)), tmp_path / "store")
    assert sorted(texts(result.outputs["all"])) == sorted(given)
    assert ledger(result.outputs["all"]) == []


@pytest.mark.usefixtures("pieces")
def test_of_equal_urls_the_first_stays_and_is_named(tmp_path: Path) -> None:
    source = read(tmp_path, rows(), 3)
    result = run_on(Outputs(before=source, all=deduplicate_urls(source, prefer=("-stars",))), tmp_path / "store")
    came, stays = documents_of(result.outputs["before"]), documents_of(result.outputs["all"])
    form = {i: (row["url"] or "").lower().replace("http:", "https:").replace(":80", "") for i, row in came.items()}
    form = {i: url.partition("?")[0] for i, url in form.items()}
    best: dict[str, Row] = {}
    for row in sorted(in_order(came), key=lambda row: -row["stars"]):
        best.setdefault(form[row["id"]], row)
    wanted = {i for i in came if not form[i]} | {row["id"] for row in best.values()}
    assert set(stays) == wanted
    for row in ledger(result.outputs["all"]):
        survivor = bytes.fromhex(json.loads(row["evidence"])["survivor"])
        assert row["reason"] == "equal URL" and survivor == best[form[row["id"]]]["id"] and survivor in stays


OPERATIONS: Mapping[str, Callable[[Described], Described]] = {
    "lines": lambda source: deduplicate_parts(source, unit="line", prefer=("-stars",)),
    "frequent": lambda source: deduplicate_parts(source, more_than=2, least=5),
    "spans": lambda source: deduplicate_spans(source, words=WORDS),
    "urls": lambda source: deduplicate_urls(source),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_outcome_is_the_same_for_any_layout(operation: Callable[[Described], Described], tmp_path: Path) -> None:
    found = []
    for files in (1, 2, 7):
        source = operation(read(tmp_path / str(files), rows(), files, seed=files))
        result = run_on(Outputs(all=source), tmp_path / f"store{files}")
        documents = documents_of(result.outputs["all"])
        told = sorted((row["id"], row["kind"], row["reason"], row["evidence"]) for row in ledger(result.outputs["all"]))
        found.append(({i: row["text"] for i, row in documents.items()}, told))
    assert found[0] == found[1] == found[2]
    assert found[0][1]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_files_are_the_same_in_any_order_of_tasks_and_stay_when_run_again(
    operation: Callable[[Described], Described], tmp_path: Path
) -> None:
    outputs = Outputs(all=operation(read(tmp_path, rows(40), 3)))
    trees = []
    for number, runner in enumerate((None, ShuffledRunner(1))):
        run_on(outputs, tmp_path / str(number), runner, chunk_rows=(4096, 3)[number])
        trees.append(tree(tmp_path / str(number)))
    assert trees[0] == trees[1]
    run_on(outputs, tmp_path / "0")
    assert tree(tmp_path / "0") == trees[0]


def test_what_a_reference_has_goes_from_documents_and_nothing_of_it_comes_out(tmp_path: Path) -> None:
    old, new = rows(50)[:25], [{**row, "name": f"later {row['name']}"} for row in rows(50)[15:]]
    run_on(Outputs(all=read(tmp_path, old, 2, source="old").keep("old")), tmp_path / "frozen")
    frozen = reference(tmp_path / "frozen", "old")
    before = tree(tmp_path / "frozen")
    source = read(tmp_path, new, 2, source="new")
    lines = deduplicate_parts(source, unit="line", prefer=(), against=frozen)
    outputs = Outputs(before=source, texts=deduplicate_against(source, against=frozen), lines=lines)
    result = run_on(outputs, tmp_path / "store")
    came = documents_of(result.outputs["before"])
    known = {row["text"] for row in old}
    assert {row["text"] for row in documents_of(result.outputs["texts"]).values()} == {
        row["text"] for row in came.values() if row["text"] not in known
    }
    survivors = Counter[bool]()
    kept = documents_of(result.outputs["texts"])
    for row in ledger(result.outputs["texts"], "dropped"):
        evidence = json.loads(row["evidence"])
        survivors["reference" in evidence] += 1
        assert (bytes.fromhex(evidence["survivor"]) in kept) == ("reference" not in evidence)
    assert survivors[True] and survivors[False]
    wanted = lines_by_definition(came, [row["text"] for row in old])
    found = {i: row["text"].rstrip("\n") for i, row in documents_of(result.outputs["lines"]).items()}
    assert found == {i: text.rstrip("\n") for i, text in wanted.items()}
    assert tree(tmp_path / "frozen") == before
    assert verify(tmp_path / "store").problems == []


def test_key_has_the_content_of_a_reference_and_not_its_place(tmp_path: Path) -> None:
    source = read(tmp_path, rows(10), 1)
    for name in ("one", "two"):
        run_on(Outputs(all=source.keep("old")), tmp_path / name)
    run_on(Outputs(all=read(tmp_path, rows(9), 1, source="other").keep("old")), tmp_path / "three")
    contents = []
    for name in ("one", "two", "three"):
        held = deduplicate_against(read(tmp_path, rows(12), 1, source="n"), against=reference(tmp_path / name, "old"))
        contents.append(run_on(Outputs(all=held), tmp_path / f"store {name}").outputs["all"].key)
    assert contents[0] == contents[1] != contents[2]


def test_reference_that_is_not_there_or_was_replaced_is_refused(tmp_path: Path) -> None:
    source = read(tmp_path, rows(5), 1)
    result = run_on(Outputs(all=source.keep("old")), tmp_path / "store")
    with pytest.raises(ConfigurationError, match="no dataset called 'new': give the folder of one of old-"):
        reference(tmp_path / "store", "new")
    frozen = reference(tmp_path / "store", result.outputs["all"].folder)
    with pytest.raises(ConfigurationError, match="no longer the dataset"):
        _ = replace(frozen, content="0" * 64).dataset
    with pytest.raises(ConfigurationError, match="has no column 'site'"):
        deduplicate_urls(source, column="site", against=frozen)


def test_wrong_arguments_are_refused_before_any_work(tmp_path: Path) -> None:
    source = read(tmp_path, rows(3), 1)
    refused: list[tuple[Callable[[], Described], str]] = [
        (lambda: deduplicate_parts(source, unit="page"), "unit is"),  # type: ignore[arg-type]
        (lambda: deduplicate_parts(source, more_than=0), "at least 1"),
        (lambda: deduplicate_spans(source, words=1), "words is from 2"),
        (lambda: deduplicate_spans(), "at least one dataset"),
        (lambda: deduplicate_urls(source, source), "comes in twice"),
        (lambda: deduplicate_parts(source, prefer="stars"), "prefer is a sequence"),
    ]
    for wrong, said in refused:
        with pytest.raises(ConfigurationError, match=said):
            wrong()
    with pytest.raises(ConfigurationError, match="is told to use site; the documents have id, text"):
        compile_stages(Outputs(all=deduplicate_urls(source, column="site")).products)
    with pytest.raises(ConfigurationError, match="compares strings, and 'stars' is int64"):
        compile_stages(Outputs(all=deduplicate_urls(source, column="stars")).products)
    with pytest.raises(ConfigurationError, match="is told to use size"):
        compile_stages(Outputs(all=deduplicate_spans(source, prefer=("-size",))).products)


def test_operations_are_shown_and_cut_documents_are_not_replayed(tmp_path: Path) -> None:
    source = read(tmp_path, rows(20), 1)
    cut = deduplicate_spans(deduplicate_urls(deduplicate_parts(source, more_than=3)), words=30)
    tokenizer = Tokenizer(write_tokenizer(tmp_path), bos=None, eos=None)
    outputs = Outputs(cells=tokenize(cut, tokenizer))
    shown = show_outputs(outputs.products)
    for said in (
        "cut RepeatedSpans(words=30, gram=15), preferring source",
        "deduplicate equal URLs in url, preferring source",
        "cut RepeatedParts(unit='paragraph', more_than=3), preferring source",
    ):
        assert said in shown
    result = run_on(outputs, tmp_path / "store")
    with pytest.raises(ConfigurationError, match="cuts what other documents have, too"):
        replay(compile_stages(outputs.products), trace_token(result.caches["cells"], "all", 3))


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_of_nothing_nothing_is_left(operation: Callable[[Described], Described], tmp_path: Path) -> None:
    empty = read(tmp_path, rows(5), 1).where(field("text") == "no such text", reason="all")
    assert run_on(Outputs(all=operation(empty)), tmp_path / "store").outputs["all"].rows == 0


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_streams_are_looked_at_across_batches(size: int) -> None:
    draw = random.Random(size)
    hashes = sorted(draw.randrange(60) for _ in range(100))
    counts = Counter(hashes)
    ordered = pa.record_batch({"hash": pa.array(hashes, pa.uint64()), "row": pa.array(range(100))})
    batches = [ordered.slice(first, size) for first in range(0, 100, size)]
    shared = [row for batch in _shared(iter(batches)) for row in batch.column("row").to_pylist()]
    assert shared == [row for row, value in enumerate(hashes) if counts[value] > 1]
    digests = pa.record_batch({"digest": pa.array([bytes(15) + bytes([h]) for h in hashes], pa.binary(16))})
    for more_than in (1, 2, 3, 99):
        found = _frequent((digests.slice(first, size) for first in range(0, 100, size)), more_than)
        assert set(found.tolist()) == {
            (bytes(15) + bytes([value])).rstrip(b"\0") for value, count in counts.items() if count > more_than
        }


INCREMENTAL: Mapping[str, tuple[Callable[..., Described], Callable[..., Described]]] = {
    "lines": (
        lambda *given: deduplicate_parts(*given, unit="line"),
        lambda new, old: deduplicate_parts(new, unit="line", against=old),
    ),
    "urls": (deduplicate_urls, lambda new, old: deduplicate_urls(new, against=old)),
    "texts": (deduplicate, lambda new, old: deduplicate_against(new, against=old)),
}


@pytest.mark.parametrize(("at_once", "later"), INCREMENTAL.values(), ids=INCREMENTAL)
def test_what_arrives_later_is_left_with_what_it_had_been_left_at_once(
    at_once: Callable[..., Described], later: Callable[..., Described], tmp_path: Path
) -> None:
    made = [row for row in rows(60) if row["text"]]
    old = read(tmp_path, made[:35], 2, source="old")
    new = read(tmp_path, [{**row, "name": f"later {row['name']}"} for row in made[25:]], 3, source="new")
    together = documents_of(run_on(Outputs(all=at_once(old, new)), tmp_path / "together").outputs["all"])
    run_on(Outputs(all=at_once(old).keep("first")), tmp_path / "first")
    made_first = datasets_in(Store(tmp_path / "first"))
    (frozen,) = [each for each in made_first if not each.name.startswith(("read", "compact"))]
    second = run_on(Outputs(all=later(new, reference(tmp_path / "first", frozen.folder))), tmp_path / "second")
    found = {identity: row["text"] for identity, row in documents_of(second.outputs["all"]).items()}
    assert found == {identity: row["text"] for identity, row in together.items() if row["source"] == "new"}
    assert len(found) < len(made) - 25


@pytest.mark.ray
def test_files_are_the_same_with_two_workers(tmp_path: Path, ray_of_two: RayRunner) -> None:
    run_on(Outputs(all=read(tmp_path, plain_rows(20), 1, source="old").keep("old")), tmp_path / "frozen")
    source = read(tmp_path, plain_rows(), 4)
    outputs = Outputs(all=deduplicate_spans(source, words=WORDS, against=reference(tmp_path / "frozen", "old")))
    trees = []
    for name, runner in (("local", None), ("ray", ray_of_two)):
        run_on(outputs, tmp_path / name, runner)
        trees.append(tree(tmp_path / name))
    assert trees[0] == trees[1]


@pytest.mark.parametrize("kind", ["lines", "spans", "URLs", "texts"])
def test_source_that_loses_more_than_its_share_stops_the_run_and_commits_nothing(tmp_path: Path, kind: str) -> None:
    source = read(tmp_path, rows(), 2)
    run_on(Outputs(old=source.keep("old")), tmp_path / "old")
    old = reference(tmp_path / "old", "old")
    called: dict[str, Callable[[float], Described]] = {
        "lines": lambda share: deduplicate_parts(source, unit="line", max_removed={"s": share}),
        "spans": lambda share: deduplicate_spans(source, words=WORDS, max_removed={"s": share}),
        "URLs": lambda share: deduplicate_urls(source, max_removed={"s": share}),
        "texts": lambda share: deduplicate_against(source, against=old, max_removed={"s": share}),
    }
    unit = "documents" if kind in ("URLs", "texts") else "characters"
    with pytest.raises(TooManyRemovedError, match=f"source 's' would lose .* {unit}, more than the share 0.01"):
        run_on(Outputs(all=called[kind](0.01)), tmp_path / "store")
    assert not [
        made for made in datasets_in(Store(tmp_path / "store")) if made.name not in ("read s", "compact read s")
    ]
    enough = run_on(Outputs(all=called[kind](1)), tmp_path / "store").outputs["all"]
    assert enough.manifest["operation"]["fields"]["max_removed"] == [["s", "1"]]


def test_share_of_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    source = read_jsonl(tmp_path, source="s")
    with pytest.raises(ConfigurationError, match="give a share 0 … 1 of one of"):
        deduplicate_parts(source, max_removed={"t": 0.5})
