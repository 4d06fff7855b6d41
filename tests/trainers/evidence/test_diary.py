"""The diary of a run: notes are added, and a line that was changed is found."""

from __future__ import annotations

import json

import pytest

from curate.configuration import ConfigurationError
from trainers.evidence.diary import NAME, Diary, Note, read_diary, write_note


@pytest.fixture(autouse=True)
def run_of_100_steps(tmp_path):
    lines = [{"kind": "train", "step": step, "loss": 3.0, "timing": {}} for step in range(100)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_notes_are_read_in_the_order_of_writing_and_bound_to_each_other(tmp_path):
    assert read_diary(tmp_path) == Diary()
    write_note(tmp_path, 100, "loss jumped;\u2028a bad shard?\n\ud800", "ada", now=0)
    write_note(tmp_path, 40, "rate was too high", "bob", now=60)
    diary = read_diary(tmp_path)
    assert diary.notes == (
        Note(100, "loss jumped;\u2028a bad shard?\n?", "ada", 0),
        Note(40, "rate was too high", "bob", 60),
    )
    assert diary.broken == () and len(diary.last) == 64


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        (lambda lines: [lines[0].replace("one", "won"), *lines[1:]], (2,)),
        (lambda lines: [lines[0], lines[2]], (2,)),
        (lambda lines: [lines[0], lines[1].replace("ada", "eve"), lines[2]], (3,)),
        (lambda lines: lines[1:], (1,)),
        (lambda lines: [lines[0], "{", lines[2]], (2, 3)),
    ],
)
def test_changed_note_is_found(tmp_path, change, broken):
    for text in ("one", "two", "three"):
        write_note(tmp_path, 1, text, "ada", now=0)
    path = tmp_path / NAME
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")
    assert read_diary(tmp_path).broken == broken
    write_note(tmp_path, 1, "four", "ada", now=0)
    assert read_diary(tmp_path).broken == broken
    assert json.loads(path.read_text().splitlines()[-1])["text"] == "four"


def test_note_that_says_nothing_is_refused(tmp_path):
    for step, text in ((-1, "x"), (0, " "), (0, "x" * 20_001)):
        with pytest.raises(ConfigurationError, match="a note has a step"):
            write_note(tmp_path, step, text, "ada")
    with pytest.raises(ConfigurationError, match="no folder of a run"):
        write_note(tmp_path / "none", 0, "x", "ada")


def test_note_on_a_step_that_the_run_has_not_come_to_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="has come to step 100, there is nothing to note of step 101"):
        write_note(tmp_path, 101, "x", "ada")
    (tmp_path / "log.jsonl").unlink()
    assert write_note(tmp_path, 0, "before it began", "ada").step == 0
    with pytest.raises(ConfigurationError, match="has come to step 0,"):
        write_note(tmp_path, 1, "x", "ada")
