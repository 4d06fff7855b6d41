"""Judges that are not reproducible: asked once, recorded, and replayed from the record."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from curate import ConfigurationError, Judge, Outputs, read_jsonl
from curate.configuration import describe
from curate.judging import last_number
from curate.recipes.compiling import compile_stages
from curate.run import Result
from curate.running.jobs import TaskError
from curate.running.warm import warm
from tests.curate.corpus import run_on, tree, write_lines
from tests.transforms.documents import batch_of
from transforms.canonical import canonical_json
from transforms.user_function import UserFunctionError

PROMPT = "How good is this text, from 0 to 5?\n{text}\nScore:"


class Counting:
    """A judge that says how many words there are, and how often it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        return f"There are 2 reasons. Score: {len(prompt.split())}.5"


def judge(record: Path, ask: object = None, **options: object) -> Judge:
    return Judge(ask or Counting(), judge="model-7b", prompt=PROMPT, record=record, **options)  # type: ignore[arg-type]


def scores(transform: Judge, texts: list[str]) -> list[int | None]:
    found: list[int | None] = transform.apply(batch_of(texts)).kept.column("quality_score").to_pylist()
    return found


def test_each_text_is_asked_for_once_and_the_record_answers_afterwards(tmp_path: Path) -> None:
    ask = Counting()
    first = scores(judge(tmp_path, ask), ["one two", "one", "one two"])
    assert first == [12_500, 11_500, 12_500] and len(ask.asked) == 2
    assert ask.asked[0] == PROMPT.replace("{text}", "one two")

    def away(prompt: str) -> str:
        raise OSError("no network")

    assert scores(judge(tmp_path, away), ["one two", "one", "one two"]) == first
    with pytest.raises(UserFunctionError, match=r"raised for document .*no network.*run again to go on"):
        scores(judge(tmp_path, away), ["another"])


def test_another_prompt_or_judge_is_another_request(tmp_path: Path) -> None:
    ask = Counting()
    scores(judge(tmp_path, ask), ["text"])
    Judge(ask, judge="model-8b", prompt=PROMPT, record=tmp_path).apply(batch_of(["text"]))
    Judge(ask, judge="model-7b", prompt="Rate: {text}", record=tmp_path).apply(batch_of(["text"]))
    assert len(ask.asked) == 3


def test_another_reading_of_the_answers_asks_nothing(tmp_path: Path) -> None:
    ask = Counting()
    scores(judge(tmp_path, ask), ["text"])
    first = judge(tmp_path, ask, score=lambda answer: 0.0015 if "reasons" in answer else None)
    assert scores(first, ["text"]) == [2] and len(ask.asked) == 1
    assert scores(judge(tmp_path, ask, score=lambda answer: None), ["text"]) == [None]


def test_configuration_has_judge_prompt_and_reading_and_not_where_the_record_lies(tmp_path: Path) -> None:
    described = canonical_json(describe(judge(tmp_path)))
    assert "model-7b" in described and "from 0 to 5" in described and str(tmp_path) not in described
    assert described == canonical_json(describe(judge(tmp_path / "elsewhere")))
    assert described != canonical_json(describe(judge(tmp_path, score=lambda answer: 1)))


def test_damaged_answer_is_named(tmp_path: Path) -> None:
    scores(judge(tmp_path), ["text"])
    (path,) = tmp_path.glob("model-7b/*/*.json")
    path.write_bytes(b"{}")
    with pytest.raises(UserFunctionError, match="is no recorded answer: remove it"):
        scores(judge(tmp_path), ["text"])


def recipe(raw: Path, ask: object, record: Path) -> Outputs:
    documents = read_jsonl(raw, source="s").apply(judge(record, ask), name="judged")
    return Outputs(documents)


def test_run_with_the_record_alone_makes_the_same_store(tmp_path: Path) -> None:
    write_lines(tmp_path / "raw" / "a.jsonl", [{"text": f"text {n} " * n} for n in range(5)])
    ask = Counting()
    warm(compile_stages(recipe(tmp_path / "raw", ask, tmp_path / "record").products))
    assert not ask.asked  # warming asks nobody
    run_on(recipe(tmp_path / "raw", ask, tmp_path / "record"), tmp_path / "first")
    assert len(ask.asked) == 5

    def away(prompt: str) -> str:
        raise OSError("no network")

    second: Result = run_on(recipe(tmp_path / "raw", away, tmp_path / "record"), tmp_path / "second")
    assert tree(tmp_path / "first") == tree(tmp_path / "second") and second.outputs["judged"].rows == 5
    with pytest.raises(TaskError, match="no network"):
        run_on(recipe(tmp_path / "raw", away, tmp_path / "empty record"), tmp_path / "third")


def test_last_number_of_an_answer_is_its_score() -> None:
    assert [last_number(text) for text in ("Score: 3.5", "4/5", "-1", "none", "3.")] == [Fraction(7, 2), 5, -1, None, 3]


def test_judge_without_name_or_place_for_the_text_is_refused(tmp_path: Path) -> None:
    for options in ({"judge": "", "prompt": PROMPT}, {"judge": "m", "prompt": "no place"}):
        with pytest.raises(ConfigurationError, match="give a name, and a prompt"):
            Judge(len, record=tmp_path, **options)  # type: ignore[arg-type]
