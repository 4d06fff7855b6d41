from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from curate.configuration import describe
from tests.transforms.documents import batch_of
from transforms.added_columns import AddColumns
from transforms.decorators import add_columns, edit_text, keep_if
from transforms.user_function import EditText, KeepIf, UserFunctionError


@keep_if("too few words", version=1)
def long_enough(row: dict[str, Any]) -> bool:
    return len(row["text"].split(" ")) > 1


@edit_text("no shouting")
def calm(text: str) -> str:
    return text.replace("!", "")


@add_columns(version=2, words=pa.int32(), first=pa.large_string())
def counted(row: dict[str, Any]) -> dict[str, Any]:
    words = row["text"].split(" ")
    return {"words": len(words), "first": words[0] or None}


def test_decorated_filter_has_the_name_of_its_function() -> None:
    assert isinstance(long_enough, KeepIf)
    (dropped,) = long_enough.apply(batch_of(["one", "two words"])).dropped.to_pylist()
    assert (dropped["transform"], dropped["reason"]) == ("long_enough", "too few words")


def test_decorated_edit_has_the_name_of_its_function() -> None:
    assert isinstance(calm, EditText)
    (edit,) = calm.apply(batch_of(["now!", "then"])).edits.to_pylist()
    assert (edit["transform"], edit["reason"], edit["cut"]) == ("calm", "no shouting", 1)


def test_name_of_a_function_is_part_of_its_key() -> None:
    plain = KeepIf(long_enough.function, "too few words", version=1)
    assert "name" not in describe(plain)["fields"]
    assert describe(long_enough)["fields"]["name"] == "long_enough"


def test_decorated_columns_are_written_with_their_types() -> None:
    outcome = counted.apply(batch_of(["two words", ""]))
    assert outcome.kept.schema == counted.output_schema(batch_of([]).schema)
    assert outcome.kept.column("words").to_pylist() == [2, 1]
    assert outcome.kept.column("first").to_pylist() == ["two", None]
    assert outcome.kept.schema.field("words").type == pa.int32()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"a": 1}, "a value for each"),
        (None, "a value for each"),
        ({"words": "many"}, "does not fit the column 'words'"),
    ],
)
def test_function_that_gives_other_columns_or_values_is_an_error_that_names_the_document(
    values: Any, message: str
) -> None:
    batch = batch_of(["text"])
    with pytest.raises(UserFunctionError, match=message) as raised:
        AddColumns(lambda row: values, {"words": pa.int32()}, version=1).apply(batch)
    assert batch.column("id")[0].as_py().hex() in str(raised.value)


def test_function_that_raises_names_the_document() -> None:
    batch = batch_of(["text"])
    with pytest.raises(UserFunctionError, match=batch.column("id")[0].as_py().hex()):
        AddColumns(lambda row: {"words": row["nothing"]}, {"words": pa.int32()}, version=1).apply(batch)


@pytest.mark.parametrize(("columns", "message"), [({}, "at least one"), ({"text": pa.large_string()}, "EditText")])
def test_columns_that_are_none_or_of_every_document_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AddColumns(lambda row: {}, columns, version=1)
