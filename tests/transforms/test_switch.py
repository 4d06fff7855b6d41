from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.documents import batch_of, kept_texts
from tests.transforms.test_filters import Letters
from transforms.chain import run_chain, unique_names
from transforms.outcome import SchemaError, nothing
from transforms.switch import Switch
from transforms.user_function import EditText
from transforms.where import Where, field

LANGUAGE = pa.field("language", pa.large_string())


def shorten(text: str) -> str:
    return text[:-1]


SWITCH = Switch("language", en=[EditText(shorten, "shortened"), Letters()], de=[Letters(3)])


def test_switch_rows_go_through_their_own_chain() -> None:
    batch = batch_of(["abc", "ab", "a", "ab", "abc"], {LANGUAGE: ["en", "en", "fr", "de", None]})
    outcome = SWITCH.apply(batch)
    assert kept_texts(outcome) == ["ab", "a", "abc"]
    assert outcome.dropped.column("transform").to_pylist() == [
        "Switch(language=en)/Letters",
        "Switch(language=de)/Letters",
    ]
    assert outcome.edits.column("transform").to_pylist() == ["Switch(language=en)/EditText"] * 2
    assert outcome.near.column("transform").to_pylist() == ["Switch(language=en)/Letters"]


def test_switch_others_have_their_chain_nulls_among_them() -> None:
    batch = batch_of(["abc", "a", "a"], {LANGUAGE: ["en", "fr", None]})
    outcome = Switch("language", en=[], others=[Letters()]).apply(batch)
    assert kept_texts(outcome) == ["abc"]
    assert outcome.dropped.column("transform").to_pylist() == ["Switch(language=others)/Letters"] * 2


def test_switch_order_of_values_does_not_matter() -> None:
    assert Switch("language", a=[Letters()], b=[]) == Switch("language", b=[], a=[Letters()])
    assert hash(Switch("language", a=[Letters()])) == hash(Switch("language", a=(Letters(),)))


def test_switch_branches_with_other_columns_are_refused() -> None:
    schema = batch_of([], {LANGUAGE: []}).schema
    with pytest.raises(SchemaError, match="language=en has 'letters_reason', 'letters_letters', 'letters_x_per_letter"):
        Switch("language", en=[Letters().tag()], de=[Letters()]).output_schema(schema)
    tagged = [Letters().tag()]
    assert "letters_reason" in Switch("language", en=tagged, others=tagged).output_schema(schema).names


def test_switch_missing_column_is_refused() -> None:
    with pytest.raises(SchemaError, match="language"):
        SWITCH.output_schema(batch_of([]).schema)


def test_switch_chain_that_is_no_list_of_transforms_is_refused() -> None:
    with pytest.raises(TypeError, match="'en'"):
        Switch("language", en=Letters())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="no transform"):
        Switch("language", en=["Letters"])  # type: ignore[list-item]


def test_switch_inside_a_switch_names_both_branches() -> None:
    batch = batch_of(["a"], {LANGUAGE: ["en"]})
    inner = Switch("source", test=[Letters()])
    outcome = Switch("language", en=[inner]).apply(batch)
    assert outcome.dropped.column("transform").to_pylist() == ["Switch(language=en)/Switch(source=test)/Letters"]


def test_switch_empty_batch_keeps_its_output_schema() -> None:
    tagged = [Letters().tag()]
    switch = Switch("language", en=tagged, others=tagged)
    schema = batch_of([], {LANGUAGE: []}).schema
    assert switch.apply(nothing(schema)).kept.schema == switch.output_schema(schema)


@given(
    st.lists(st.tuples(st.text("abx", max_size=5), st.sampled_from(["en", "de", "fr", None])), max_size=12), st.data()
)
@settings(max_examples=80)
def test_switch_any_batching_gives_the_same_rows(rows: list[tuple[str, str | None]], data: st.DataObject) -> None:
    batch = batch_of([text for text, _ in rows], {LANGUAGE: [language for _, language in rows]})
    cut = data.draw(st.integers(0, len(rows)))
    whole = SWITCH.apply(batch)
    parts = [SWITCH.apply(batch.slice(0, cut)), SWITCH.apply(batch.slice(cut))]
    for table in ("kept", "dropped", "edits", "near"):
        assert getattr(whole, table).to_pylist() == [row for part in parts for row in getattr(part, table).to_pylist()]


def test_chain_repeated_transforms_have_unique_names() -> None:
    chain = [Letters(), Letters(3), SWITCH, SWITCH, Letters().tag()]
    assert unique_names(chain) == ["Letters", "Letters#2", "Switch", "Switch#2", "Letters.tag"]
    batch = batch_of(["a", "ab", "abc"], {LANGUAGE: ["de", "de", "en"]})
    outcome = run_chain([Letters(), SWITCH, Switch("language", en=[Letters()])], batch)
    assert outcome.dropped.column("transform").to_pylist() == ["Letters", "Switch(language=de)/Letters"]
    assert outcome.near.column("transform").to_pylist() == [
        "Switch(language=en)/Letters",
        "Switch#2(language=en)/Letters",
    ]


def test_chain_near_miss_that_is_dropped_later_is_left_out() -> None:
    outcome = run_chain([Letters(), Where(field("text") == "abc", "other")], batch_of(["ab", "abc"]))
    assert kept_texts(outcome) == ["abc"]
    assert outcome.near.num_rows == 0


def test_chain_without_transforms_keeps_all() -> None:
    batch = batch_of(["a"])
    assert run_chain([], batch).kept == batch
