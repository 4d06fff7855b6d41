from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts, reasons
from transforms.user_function import EditText, KeepIf, UserFunctionError, changed

LEAST = 2


def longer(row: dict[str, Any]) -> bool:
    return len(row["text"]) >= LEAST


def shout(text: str) -> str:
    return text.upper()


def surrogates(text: str) -> str:
    return text + "\ud800" + "\ud83d\ude00"


def fails(value: Any) -> Any:
    raise KeyError("no such field")


def test_keep_if_false_rows_are_dropped() -> None:
    outcome = KeepIf(longer, "too short").apply(batch_of(["a", "ab"]))
    assert kept_texts(outcome) == ["ab"]
    assert reasons(outcome) == ["too short"]


def test_edit_text_counts_what_changed() -> None:
    outcome = EditText(shout, "upper case").apply(batch_of(["abC", "ABC", ""]))
    assert kept_texts(outcome) == ["ABC", "ABC", ""]
    (row,) = outcome.edits.to_pylist()
    assert (row["reason"], row["cut"], row["inserted"]) == ("upper case", 2, 2)


def test_edit_text_lone_surrogates_become_replacement_characters() -> None:
    outcome = EditText(surrogates, "test").apply(batch_of(["a"]))
    assert kept_texts(outcome) == ["a\ufffd😀"]
    assert outcome.edits.column("inserted").to_pylist() == [2]


def test_function_that_raises_stops_with_the_id() -> None:
    batch = batch_of(["a"])
    identity = batch.column("id")[0].as_py().hex()
    for transform in (KeepIf(fails, "reason"), EditText(fails, "reason")):
        with pytest.raises(UserFunctionError, match=identity):
            transform.apply(batch)


def test_function_that_returns_another_type_is_refused() -> None:
    with pytest.raises(UserFunctionError, match="True or False"):
        KeepIf(lambda row: row["text"], "reason").apply(batch_of(["a"]))
    with pytest.raises(UserFunctionError, match="string"):
        EditText(lambda text: len(text), "reason").apply(batch_of(["a"]))  # type: ignore[arg-type,return-value]


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
@settings(max_examples=300)
def test_changed_any_texts_is_what_lies_between_common_ends(before: str, after: str) -> None:
    cut, inserted = changed(before, after)
    assert len(before) - cut + inserted == len(after)
    beginnings = [n for n in range(min(len(before), len(after)) + 1) if before[:n] == after[:n]]
    rest_before, rest_after = before[max(beginnings) :], after[max(beginnings) :]
    ends = [
        n for n in range(min(len(rest_before), len(rest_after)) + 1) if n == 0 or rest_before[-n:] == rest_after[-n:]
    ]
    assert (cut, inserted) == (len(rest_before) - max(ends), len(rest_after) - max(ends))


def behaviour_of(source: str, folder: Path, expression: str = "f") -> str:
    """The name of the behaviour of a function in a module of this source, in a fresh interpreter."""
    (folder / "recipe.py").write_text(source)
    code = f"import recipe; from transforms.user_function import KeepIf; print(KeepIf({expression}, 'r').behaviour)"
    code = code.replace("KeepIf(", "KeepIf(recipe.")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


SOURCE = """
import math
LEAST = 2
NAMES = {"b": 1, "a": {1.5}}
def helper(row):
    return row["text"] != "" and len(NAMES) > 0
def f(row):
    return helper(row) and len(row["text"]) >= LEAST
"""


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        (("", ""), False),
        (("import math", "import math, json"), False),
        (("LEAST = 2", "LEAST = 3"), True),
        (("1.5", "2.5"), True),
        (('!= ""', '!= "a"'), True),
        ((">= LEAST", "> LEAST"), True),
    ],
)
def test_behaviour_without_version_follows_source_constants_and_helpers(
    edit: tuple[str, str], changes: bool, tmp_path: Path
) -> None:
    before = behaviour_of(SOURCE, tmp_path)
    assert (behaviour_of(SOURCE.replace(*edit), tmp_path) != before) is changes


def test_behaviour_of_a_closure_follows_its_values() -> None:
    def at_least(least: int) -> Callable[[dict[str, Any]], bool]:
        def long_enough(row: dict[str, Any]) -> bool:
            return len(row["text"]) >= least

        return long_enough

    assert KeepIf(at_least(2), "r") == KeepIf(at_least(2), "r")
    assert KeepIf(at_least(2), "r") != KeepIf(at_least(3), "r")


def test_behaviour_with_version_is_that_version_alone() -> None:
    assert KeepIf(longer, "r", version=1).behaviour == "longer version 1"
    assert EditText(shout, "r", version=2) != EditText(shout, "r", version=3)


def test_behaviour_follows_declared_uses() -> None:
    assert KeepIf(longer, "r", uses=(1,)) != KeepIf(longer, "r", uses=(2,))
    assert KeepIf(longer, "r", uses=(shout,)) != KeepIf(longer, "r", uses=(fails,))


def test_behaviour_that_cannot_be_told_needs_a_version() -> None:
    with pytest.raises(ValueError, match="version"):
        KeepIf(len, "r")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="version"):
        KeepIf(longer, "r", uses=(object(),))
    with pytest.raises(ValueError, match="lambdas"):
        _ = (KeepIf(lambda row: True, "r"), KeepIf(lambda row: False, "r"))  # fmt: skip


def test_description_holds_behaviour_and_reason() -> None:
    described = KeepIf(longer, "too short", version="a").description()
    assert described == {
        "class": "KeepIf",
        "version": 1,
        "fields": {"function": "longer version a", "reason": "too short"},
    }


def test_user_function_pickled_keeps_its_behaviour() -> None:
    transform = EditText(shout, "upper case")
    assert pickle.loads(pickle.dumps(transform)) == transform
    assert hash(transform) == hash(EditText(shout, "upper case"))
