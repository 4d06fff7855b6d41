"""The quarantine on the command line: said after a run, printed, passed on, and checked by verify."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curate.accounting.quarantine import quarantine_list, quarantined, read_quarantine
from curate.command_line import main
from curate.store import Store
from curate.upkeep.verify import verify
from tests.curate.corpus import sentence

RECIPE = '''
from curate import Outputs, read_jsonl, recipe
from transforms import KeepIf

def has_no_number(row):
    return 1 // len(row["text"].split("7")[0]) == 0

@recipe
def texts(root: str) -> Outputs:
    """Return texts."""
    return Outputs(read_jsonl(root, source="texts").apply(KeepIf(has_no_number, reason="short")))
'''


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a recipe whose function raises for the last of twelve texts."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    lines = [{"text": f"The {sentence(n)}"} for n in range(11)] + [{"text": "7 of 11"}]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "recipe.py").write_text(RECIPE)
    return tmp_path


def run(store: str, *more: str) -> int:
    return main(["run", "recipe.py", "--store", store, "--runner", "local", "--set", "root=in", *more])


def test_verdicts_are_said_printed_and_passed_to_another_store(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("store") == 0
    first = capsys.readouterr()
    assert "11 documents" in first.out and "quarantined documents: 1 raised; curate quarantine store lists" in first.err
    assert main(["quarantine", "store"]) == 0
    printed = capsys.readouterr()
    (line,) = map(json.loads, printed.out.splitlines())
    assert (line["transform"], line["reason"]) == ("KeepIf", "raised")
    assert json.loads(line["evidence"])["type"] == "ZeroDivisionError"
    assert printed.err == "1 document: 1 KeepIf raised\n"
    (place / "verdicts").write_text(printed.out)
    assert run("other", "--quarantine", "verdicts") == 0
    assert capsys.readouterr().out == first.out
    assert verify(place / "other").problems == []


def test_store_without_verdicts_prints_none(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "in" / "a.jsonl").write_text(json.dumps({"text": "a fine text"}) + "\n")
    assert run("store") == 0
    assert "quarantined" not in capsys.readouterr().err
    assert main(["quarantine", "store"]) == 0
    assert capsys.readouterr() == ("", "no document is quarantined\n")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--quarantine", "nowhere"), "--quarantine takes quarantine lists"),
        (("--quarantine", "recipe.py"), "is not a quarantine verdict"),
        (("--document-seconds", "0"), "give more than 0 s"),
        (("--document-memory", "0"), "at least 1 MiB"),
    ],
)
def test_wrong_options_exit_2_and_nothing_is_done(
    options: tuple[str, str], says: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("store", *options) == 2
    assert says in capsys.readouterr().err
    assert not (place / "store" / "shards").exists()


def test_verify_says_where_a_list_is_not_the_one_that_the_shard_was_made_with(place: Path) -> None:
    assert run("store") == 0
    (path,) = (place / "store" / "quarantine").iterdir()
    key = json.loads(path.read_text())["shard"]
    (verdict,) = read_quarantine(Store(place / "store"), key).verdicts.values()
    path.write_bytes(quarantine_list(key, [verdict, verdict]))
    assert any("is not the list that this task read" in problem for problem in verify(place / "store").problems)
    path.unlink()
    assert any("is not the list that this task read" in problem for problem in verify(place / "store").problems)


def test_quarantined_documents_are_counted_by_reason_over_steps_and_sources() -> None:
    flow = {"dropped": {"F": {"quarantined: hung": {"documents": 2, "characters": 0}, "short": {"documents": 9}}}}
    steps = {"00": {"sources": {"a": flow, "b": flow}}, "01": {"sources": {"a": flow}}}
    assert quarantined({"steps": steps}) == {"hung": 6}
    assert quarantined({}) == {}
