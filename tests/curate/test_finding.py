"""`curate where`: every place of a document, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curate import Outputs, deduplicate, read_jsonl, read_warc, tokenize, train_tokenizer
from curate.command_line import main
from curate.configuration import ConfigurationError
from curate.digests import text_digest
from curate.run import Result, run
from curate.store import Store
from curate.upkeep.finding import Place, Question, TokenPlace, find, one_space
from curate.upkeep.trace import read_row
from transforms import ExtractText, KeepIf, MinHash

INPUTS = Path(__file__).parents[1] / "golden" / "inputs"
TEXT = "The  harbour of Selm\nlies where the river bends, and the people keep a book of every ship."
WORDS = "harbour of Selm lies\twhere the  river"


def _recipe(folder: Path) -> Outputs:
    notes = read_jsonl(folder, source="notes", columns={"url": "url"})
    notes = notes.apply(KeepIf(lambda row: "Zinnober" not in row["text"], reason="colour", version=1), name="notes")
    pages = read_warc(INPUTS / "pages", "*.warc", source="pages").apply(ExtractText(), name="pages")
    unique = deduplicate(notes, pages, method=MinHash(threshold="0.8"))
    return Outputs(training=tokenize(unique, train_tokenizer(unique, 280)))


@pytest.fixture(scope="module")
def made(memory: Path) -> Result:
    folder = memory / "where"
    (folder / "in").mkdir(parents=True)
    rows = [
        {"url": f"https://a.example/{n}", "text": f"Of house {n} one reads that {n * n} lived in it."}
        for n in range(30)
    ]
    rows[7] = {"url": "https://A.example:443/%73elm#top", "text": TEXT}
    rows[20] = {"url": "https://b.example/selm", "text": TEXT}
    rows[25] = {"url": "https://c.example/red", "text": "A text on Zinnober, which is red."}
    for name, some in (("a", rows[:15]), ("b", rows[15:])):
        (folder / "in" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some), "utf-8")
    return run(_recipe(folder / "in"), folder / "store", runner="local")


@pytest.fixture(scope="module")
def store(made: Result) -> Store:
    return made.stages[0].store


def _places(store: Store, by: str, value: str) -> list[Place | TokenPlace]:
    return list(find(store, Question(by, value)))


def _documents(places: list[Any]) -> list[tuple[str, int, int]]:
    return [(p.dataset.name, p.shard, p.row) for p in places if isinstance(p, Place) and p.kind == "document"]


@pytest.mark.parametrize("text", [TEXT, WORDS, "ends of nothing"])
def test_text_is_found_wherever_it_stands_whatever_the_white_space(made: Result, store: Store, text: str) -> None:
    found = _documents(_places(store, "text", text))
    expected = []
    for dataset in made.stages:
        if any(name == "text" for name, _ in dataset.manifest["schema"]):
            for ordinal, shard in enumerate(dataset.shards()):
                rows = [read_row(dataset, ordinal, row) for row in range(shard["rows"])]
                expected += [
                    (dataset.name, ordinal, n) for n, r in enumerate(rows) if one_space(text) in one_space(r["text"])
                ]
    assert sorted(found) == sorted(expected)
    assert bool(found) == (text != "ends of nothing")


@pytest.mark.parametrize("url", ["https://A.example:443/%73elm#top", "http://a.example/selm"])
def test_url_is_found_exactly_and_in_its_normalised_form(store: Store, url: str) -> None:
    places = _places(store, "url", url)
    assert ("notes", 0, 7) in _documents(places)
    (identity,) = {place.id for place in places if isinstance(place, Place) and place.kind == "document"}
    assert _documents(_places(store, "id", identity.hex())) == _documents(places)


def test_url_of_a_page_is_found_before_and_after_extraction(made: Result, store: Store) -> None:
    read = next(dataset for dataset in made.stages if dataset.name == "pages")
    url = next(read.batches(["url"])).column("url")[0].as_py()
    assert {name for name, _, _ in _documents(_places(store, "url", url))} >= {"pages", "compact pages"}


def test_equal_text_and_what_went_for_it_are_found_by_the_id_of_one(store: Store) -> None:
    (identity,) = {
        place.id
        for place in _places(store, "url", "https://a.example/selm")
        if isinstance(place, Place) and place.kind == "document"
    }
    places = _places(store, "id", identity.hex())
    gone = [place for place in places if isinstance(place, Place) and place.kind == "dropped"]
    assert [(place.dataset.name, place.detail) for place in gone] == [("deduplicate", "deduplicate, equal text")]
    assert gone[0].id != identity
    assert gone[0].digest == text_digest(TEXT)


def test_near_duplicates_that_went_because_it_stayed_are_named(memory: Path) -> None:
    folder = memory / "near"
    (folder / "in").mkdir(parents=True)
    words = [f"word{n}" for n in range(90)]
    rows = [{"text": " ".join(words)}, {"text": " ".join([*words[:-1], "other"])}]
    (folder / "in" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    result = run(
        Outputs(unique=deduplicate(read_jsonl(folder / "in", source="n"), method=MinHash())),
        folder / "store",
        runner="local",
    )
    (stays,) = (row["id"] for batch in result.outputs["unique"].batches() for row in batch.to_pylist())
    (gone,) = (
        p
        for p in _places(Store(folder / "store"), "id", stays.hex())
        if isinstance(p, Place) and p.kind == "made others go"
    )
    assert gone.id != stays
    assert gone.detail == "deduplicate, near duplicate"


def test_dropped_text_is_found_by_its_whole_text_and_in_samples(store: Store) -> None:
    places = _places(store, "text", "A text on Zinnober, which is red.")
    assert [place.kind for place in places if isinstance(place, Place)] == ["dropped", "sample"]
    assert [place.kind for place in _places(store, "text", "on Zinnober") if isinstance(place, Place)] == ["sample"]


def test_tokens_are_those_of_the_document(made: Result, store: Store) -> None:
    (place,) = (p for p in _places(store, "text", WORDS) if isinstance(p, TokenPlace))
    cache = place.caches.open()[place.cell]
    assert (place.start, place.stop) == (int(cache.starts[place.document]), int(cache.starts[place.document + 1]))
    assert cache.text_digests(place.document, place.document + 1)[0].tobytes() == text_digest(TEXT)


def test_blocks_and_batches_change_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from curate.upkeep import finding

    before = [str(place) for place in _places(store, "text", WORDS)]
    monkeypatch.setattr(finding, "ROWS", 4)
    monkeypatch.setattr(finding, "BLOCK", 3)
    assert [str(place) for place in _places(store, "text", WORDS)] == before


def test_place_in_a_shard_of_several_row_groups_and_long_rows(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    words = [f"{n} {'x' * (9 << 20)} word{n}end" for n in range(12)]
    lines = "".join(json.dumps({"text": text}) + "\n" for text in words)
    (tmp_path / "in" / "a.jsonl").write_text(lines, "utf-8")
    result = run(Outputs(notes=read_jsonl(tmp_path / "in", source="n")), tmp_path / "store", runner="local")
    store = Store(tmp_path / "store")
    document = _places(store, "text", "word10end")[0]
    assert isinstance(document, Place)
    assert (document.row, document.digest) == (10, text_digest(words[10]))
    assert _documents(_places(store, "id", document.id.hex())) == [(result.outputs["notes"].name, 0, 10)]


@pytest.mark.parametrize(("by", "value"), [("id", "12"), ("id", "g" * 32), ("text", " \n"), ("url", "")])
def test_question_that_cannot_be_asked_is_refused(by: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--{by}"):
        Question(by, value)


def test_where_command_prints_places_and_says_when_there_is_none(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["where", str(store.root), "--url", "https://a.example/selm"]) == 0
    shown = capsys.readouterr()
    assert "document: notes (" in shown.out
    assert "record: a.jsonl, stored " in shown.out
    assert "MB/s" in shown.err
    assert main(["where", str(store.root), "--id", "0" * 32]) == 1
    assert main(["where", str(store.root), "--id", "0"]) == 2


@given(st.lists(st.sampled_from(["a", "b", " ", "\n", "\u3000", "\xa0", "\u2028", "\r"])))
def test_white_space_counts_as_one_space(pieces: list[str]) -> None:
    assert one_space("".join(pieces)) == " ".join("".join(pieces).split())
