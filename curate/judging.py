"""A judge that is not reproducible, as a language model, as a scorer: its answers are recorded inputs.

A request is the judge's name, the prompt and the text; its digest names the answer in the record: a folder, or URL,
that the user keeps and publishes with the data. What is recorded is never asked for again, on any machine; of
two answers that come at once the first stays. A score is read from the answer as it was recorded, so another way of
reading it asks nothing. Who has the record makes the same scores without the judge.

    <record>/<judge>/<2 digits>/<digest>.json     the answer, the judge's name, digests of prompt and text

Where a judge raises, the run stops, with the document named: no document goes because a service was away, and the next
run asks for what is missing. Cost: one file and one call per distinct text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from curate.configuration import ConfigurationError
from curate.digests import digest_bytes, digest_json
from curate.store import Store, StoreError, json_line, open_store
from transforms.behaviour import behaviour
from transforms.outcome import Outcome, kept, require
from transforms.quality import SCORE_TYPE, score_field
from transforms.schema import set_columns, with_columns
from transforms.user_function import UserFunctionError

MOST: Final = 1_000_000
"""Largest score in thousandths."""

_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_PLACE: Final = "{text}"


def last_number(answer: str) -> Fraction | None:
    """Return the last number in `answer`, "Score: 3.5" is 7/2; None where there is none."""
    found = _NUMBER.findall(answer)
    return Fraction(found[-1]) if found else None


@dataclass(frozen=True, slots=True, init=False)
class Judge:
    """Writes `<label>_score`: what a judge says of each text, in thousandths; null where its answer holds no score."""

    ask: Callable[[str], str] = field(compare=False, metadata={"key": False})
    judge: str
    prompt: str
    record: Store = field(compare=False, metadata={"key": False})
    label: str
    characters: int
    score: Callable[[str], Any] = field(compare=False, metadata={"key": False})
    behaviour: str

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        ask: Callable[[str], str],
        *,
        judge: str,
        prompt: str,
        record: str | Path | Store,
        label: str = "quality",
        characters: int = 4_000,
        score: Callable[[str], Any] = last_number,
        version: int | str | None = None,
        uses: Sequence[object] = (),
    ) -> None:
        """State who judges, and how.

        Args:
            ask: prompt with the text in it -> the answer. What it does besides `judge` and `prompt` (a temperature)
                is no part of the request: give another name for another judge.
            judge: name of the judge, with its version.
            prompt: what is asked; "{text}" stands for the text.
            record: folder or URL of the answers.
            label: beginning of the column's name.
            characters: code points from the beginning of the text that are shown.
            score: answer -> number, or None; by default the last number in it.
            version: names the behaviour of `score`; None: a digest of its source does.
            uses: functions and values on which `score` depends, for the digest.

        Raises:
            ConfigurationError: the prompt has no place for the text, or there is no judge's name.
        """
        if _PLACE not in prompt or not judge or characters < 1:
            raise ConfigurationError(f"Judge(judge={judge!r}): give a name, and a prompt with {_PLACE} in it")
        if score is last_number and version is None:
            version = 1
        values = (ask, judge, prompt, open_store(record), label, characters, score, behaviour(score, version, uses))
        for name, value in zip(Judge.__slots__, values, strict=True):
            object.__setattr__(self, name, value)

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the column; `text` is needed."""
        require(schema, "Judge", text=pa.large_string())
        return with_columns(schema, score_field(self.label))

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Score the texts of `batch`.

        Raises:
            UserFunctionError: the judge or `score` raised; the message names the document.
        """
        self.output_schema(batch.schema)
        ids, scores = batch.column("id"), []
        for row, text in enumerate(batch.column("text").to_pylist()):
            try:
                scores.append(_thousandths(self.score(self.answer(text[: self.characters]))))
            except Exception as error:
                what = f"Judge({self.judge!r}) raised for document {ids[row].as_py().hex()}: {error!r}"
                raise UserFunctionError(f"{what}. What was answered is recorded: run again to go on") from error
        return kept(set_columns(batch, {score_field(self.label): pa.array(scores, SCORE_TYPE)}))

    def answer(self, text: str) -> str:
        """Return the recorded answer on `text`, which is asked for where there is none."""
        name = self._name(text)
        if self.record.exists(name):
            return _answer(self.record, name)
        said = self.ask(self.prompt.replace(_PLACE, text))
        content = {
            "answer": str(said),
            "judge": self.judge,
            "prompt": digest_bytes(self.prompt.encode()),
            "text": digest_bytes(text.encode()),
        }
        try:
            self.record.publish_bytes(json_line(content), name)
        except StoreError:
            if not self.record.exists(name):
                raise
        return _answer(self.record, name)

    def _name(self, text: str) -> str:
        request = digest_json({"judge": self.judge, "prompt": self.prompt, "text": text})
        folder = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in self.judge)
        return f"{folder[:80]}/{request[:2]}/{request}.json"


def _answer(record: Store, name: str) -> str:
    try:
        return str(json.loads(record.read_bytes(name))["answer"])
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{record.url(name)} is no recorded answer: remove it to have it asked for again") from None


def _thousandths(value: Any) -> int | None:
    if value is None:
        return None
    exact = Fraction(value) if not isinstance(value, float) else Fraction(str(value))
    return max(-MOST, min(MOST, int((2000 * exact + 1) // 2)))
