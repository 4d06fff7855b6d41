"""`curate duplicates`: groups as the ledger has them, what differs, hostile texts, sources that may not be shown."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

from curate import Outputs, deduplicate, deduplicate_against, reference
from curate.command_line import main
from curate.commands.duplicate_groups import group_of, largest_groups, texts_before
from curate.commands.duplicates import browse
from curate.commands.text_diff import CHANGES, WORDS, word_diff
from curate.datasets import dataset_folder
from curate.run import Result
from tests.curate.corpus import METHOD, changed, ledger, read_books, run_on, sentence, staged, write_lines

KEYS = "abcdefg"


@pytest.fixture(scope="module")
def result(memory: Path) -> Result:
    """Near duplicates of two texts, equal texts, in a store that nobody writes to."""
    texts = [sentence(1), changed(sentence(1)), changed(sentence(1), "third\x1b[2J"), sentence(1), sentence(2)]
    texts += [changed(sentence(2)), sentence(3)]
    lines = [{"isbn": key, "lang": "en", "text": text} for key, text in zip(KEYS, texts, strict=True)]
    write_lines(memory / "browsed" / "books" / "a.jsonl", lines)
    unique = deduplicate(read_books(memory / "browsed"), method=METHOD, prefer=("-length",))
    return run_on(Outputs(texts=unique), memory / "browsed store")


def test_groups_are_those_of_the_ledger_largest_first(result: Result) -> None:
    dataset = staged(result, "deduplicate")
    dropped = {row["id"] for row in ledger(dataset, "dropped")}
    groups = largest_groups(dataset, 10, 10)
    assert [group.size for group in groups] == [3, 1]
    assert {member.id for group in groups for member in group.members} == dropped
    assert [len(group.members) for group in largest_groups(dataset, 1, 2)] == [2]
    for group in groups:
        assert group_of(dataset, group.survivor, 10) == group
        assert all(group_of(dataset, member.id, 10) == group for member in group.members)
    assert group_of(dataset, bytes(16), 10) is None


def test_texts_of_dropped_documents_are_read_where_they_were(result: Result) -> None:
    dataset = staged(result, "deduplicate")
    ids = [row["id"] for row in ledger(dataset, "dropped")]
    assert set(texts_before(dataset, ids)) == set(ids)
    assert texts_before(dataset, [bytes(16)]) == {}


def test_command_shows_survivor_similarity_and_what_differs(result: Result, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(result.store.root)
    assert main(["duplicates", store, "--stage", "deduplicate", "--largest", "1"]) == 0
    said = capsys.readouterr().out
    assert "1 stayed, 3 went" in said and re.search(r"Jaccard similarity \d+/\d+ = 0\.\d{3}, \d+ characters", said)
    assert "[-" in said and "+}" in said
    assert "\x1b" not in said
    survivor = largest_groups(staged(result, "deduplicate"), 2, 1)[1].survivor.hex()
    assert main(["duplicates", store, "--id", survivor]) == 0
    said = capsys.readouterr().out
    assert said.count("── group") == 1 and survivor in said
    assert main(["duplicates", store, "--stage", "other"]) == 2
    assert "it has deduplicate" in capsys.readouterr().err
    for wrong, why in (("00", "32 hex digits"), ("0" * 32, "no duplicate")):
        assert main(["duplicates", store, "--id", wrong]) == 2
        assert why in capsys.readouterr().err


def test_texts_that_may_not_be_shown_are_not(tmp_path: Path) -> None:
    lines = [{"isbn": key, "lang": "en", "text": text} for key, text in (("a", "SECRET one"), ("b", "SECRET one"))]
    write_lines(tmp_path / "books" / "a.jsonl", lines)
    hidden = run_on(Outputs(texts=deduplicate(read_books(tmp_path, excerpts=False))), tmp_path / "store")
    said = "\n".join(browse(hidden))
    assert "SECRET" not in said and "may not be shown" in said and "equal text" in said


def test_diff_shows_words_of_either_side_in_place() -> None:
    assert list(word_diff("a b c d", "a x c d")) == ["a [-b-] {+x+} c d"]
    assert list(word_diff("a b", "a b c")) == ["a b {+c+}"]
    assert list(word_diff("b a", "a")) == ["[-b-] a"]
    assert list(word_diff("a a", "a a a")) == ["a a {+a+}"]
    assert list(word_diff("", "")) == ["the texts are the same"]
    assert list(word_diff("a  b", "a b")) == ["the words are the same"]


def test_diff_neutralises_what_terminals_obey() -> None:
    lines = list(word_diff("a \x1b]0;x\x07 b", "a \u202eq b"))
    assert lines == ["a [-\\u001b]0;x\\u0007-] {+\\u202eq+} b"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a " * 100_000, "b " * 100_000),
        ("a b " * 50_000, "b a c " * 50_000),
        ("x" * 3_000_000, "y" * 3_000_000),
        (" ".join(map(str, range(5000))), " ".join(map(str, range(5000, 0, -1)))),
        (" ".join(str(n) for n in range(1000)), " ".join(str(n if n % 2 else -n) for n in range(1000))),
    ],
)
def test_diff_of_anything_ends_soon_and_is_short(before: str, after: str) -> None:
    began = time.process_time()
    lines = list(word_diff(before, after))
    assert time.process_time() - began < 5
    assert len(lines) <= CHANGES + 2 < WORDS
    assert sum(map(len, lines)) < 60_000


def test_survivor_in_a_reference_and_texts_that_are_gone_are_said(tmp_path: Path) -> None:
    write_lines(tmp_path / "books" / "a.jsonl", [{"isbn": "a", "lang": "en", "text": "one"}])
    run_on(Outputs(old=read_books(tmp_path).keep("old")), tmp_path / "earlier")
    held = deduplicate_against(read_books(tmp_path), against=reference(tmp_path / "earlier", "old"))
    result = run_on(Outputs(new=held), tmp_path / "store")
    assert "(in the reference old)" in "\n".join(browse(result))
    for entry in staged(result, "against old").manifest["inputs"]:
        shutil.rmtree(tmp_path / "store" / dataset_folder(entry["name"], entry["key"]))
    assert "(no longer in the store)" in "\n".join(browse(result))
