"""Descriptions of configuration: the same on every machine, different for whatever reaches the output."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from curate.configuration import KEYED_IF_GIVEN, ConfigurationError, describe
from curate.digests import digest_bytes, digest_json
from curate.readers.reader import Column, Reader
from transforms.gopher_rules import GopherQuality
from transforms.minhash import MinHash
from transforms.outcome import name_of
from transforms.where import Where
from transforms.where import field as column


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    HIGH = 1


@dataclass(frozen=True, slots=True)
class Model:
    """A transform with everything that a description holds."""

    path: Path | None = None
    threshold: float = 0.5
    workers: int = field(default=1, metadata={"key": False})

    version: ClassVar[int] = 3
    libraries: ClassVar[tuple[str, ...]] = ("pyarrow", "numpy")


@dataclass(frozen=True, slots=True)
class Nested:
    inner: Any = ()


@dataclass(frozen=True, slots=True)
class Grown:
    old: int
    new: tuple[str, ...] = field(default=(), metadata=KEYED_IF_GIVEN)


def test_field_that_was_added_later_stands_in_the_key_only_where_it_is_given() -> None:
    assert describe(Grown(1))["fields"] == {"old": 1}
    assert describe(Grown(1, ("a",)))["fields"] == {"old": 1, "new": ["a"]}


def test_description_of_a_dataclass_has_class_version_libraries_and_fields() -> None:
    assert describe(Model()) == {
        "class": "Model",
        "version": 3,
        "libraries": {"pyarrow": version("pyarrow"), "numpy": version("numpy")},
        "fields": {"path": None, "threshold": {"decimal": "0.5"}},
    }


def test_field_marked_as_no_part_of_the_key_changes_nothing() -> None:
    assert describe(Model(workers=8)) == describe(Model())


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (None, None),
        (True, True),
        (3, 3),
        ("ä", "ä"),
        (0.1, {"decimal": "0.1"}),
        (Decimal("1.50"), {"decimal": "1.50"}),
        (Fraction(1, 3), {"ratio": "1/3"}),
        (b"\xff\x00", {"hex": "ff00"}),
        (Colour.RED, {"enum": "Colour.RED"}),
        (Level.HIGH, {"enum": "Level.HIGH"}),
        (pa.large_string(), {"type": "string"}),
        ((1, "a", (2,)), [1, "a", [2]]),
        ({"b": 1, "a": (0.5,)}, {"map": {"b": 1, "a": [{"decimal": "0.5"}]}}),
        ({3, 1, 2}, {"set": [1, 2, 3]}),
        (frozenset({"b", "a"}), {"set": ["a", "b"]}),
    ],
)
def test_value_has_one_description(value: object, described: object) -> None:
    assert describe(value) == described
    digest_json(describe(Nested(value)))


def test_values_that_differ_have_descriptions_that_differ() -> None:
    values: list[Any] = [
        None, False, 0, "0", 0.0, 1, True, 1.0, "1", "RED", Colour.RED, b"1", Fraction(1), (1,), {1}, {"1": 1}, (), "",
        ((1, 2), 3), (1, (2, 3)), b"", Nested(), Nested(Nested()), pa.string(), "string", {"type": "string"}, {},
        {"map": {}}, Decimal("1.5"), {"decimal": "1.5"},
    ]  # fmt: skip
    assert len({digest_json(describe(value)) for value in values}) == len(values)


def test_set_of_things_that_have_no_order_is_described_in_one() -> None:
    values = [Fraction(1, 3), Fraction(1, 2), Colour.RED, (1, 2)]
    assert describe(frozenset(values)) == describe(frozenset(values[::-1]))


def test_path_stands_for_the_bytes_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"model")
    (tmp_path / "b").write_bytes(b"model")
    (tmp_path / "c").write_bytes(b"other")
    described = [describe(Model(tmp_path / name)) for name in "abc"]
    assert described[0] == described[1] != described[2]
    assert described[0]["fields"]["path"] == {"file": digest_bytes(b"model")}
    assert str(tmp_path) not in str(described)


@pytest.mark.parametrize("name", ["nowhere", ""])
def test_path_of_no_file_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="a transform names this file, and its key needs it"):
        describe(Model(tmp_path / name))


@pytest.mark.parametrize("value", [lambda: 1, object(), print, Colour, Model, ..., range(3), iter([])])
def test_value_that_may_differ_between_machines_is_refused_with_advice(value: object) -> None:
    with pytest.raises(ConfigurationError, match="cannot be part of a key: use numbers, strings, paths"):
        describe(Nested(value))


def test_mapping_with_keys_that_are_no_strings_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="1 cannot be part of a key as the key of a mapping"):
        describe(Nested({1: "a"}))


@dataclass(frozen=True, slots=True)
class Derived(Model):
    """Says no version of its own."""


@dataclass(frozen=True, slots=True)
class Versioned:
    """Has a field that is called version."""

    version: int = 7


def test_version_that_a_class_inherits_counts_and_a_field_of_that_name_is_a_field() -> None:
    assert describe(Derived())["version"] == 3
    assert describe(Versioned()) == {"class": "Versioned", "fields": {"version": 7}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (GopherQuality(), GopherQuality(min_words=51)),
        (GopherQuality(), GopherQuality(stop_words=("the", "to"))),
        (MinHash(threshold=0.8), MinHash(threshold=0.7)),
        (Where(column("licence") == "MIT", reason="r"), Where(column("licence") == "ISC", reason="r")),
        (Where(column("licence") == "MIT", reason="r"), Where(column("licence") != "MIT", reason="r")),
        (Where(column("licence") == "MIT", reason="r"), Where(column("source") == "MIT", reason="r")),
    ],
)
def test_transforms_that_differ_in_a_field_have_other_keys(one: object, other: object) -> None:
    assert digest_json(describe(one)) != digest_json(describe(other))
    assert describe(one) == describe(replace(one))  # type: ignore[type-var]


def test_threshold_written_in_other_ways_has_one_key() -> None:
    assert describe(MinHash(threshold=0.8)) == describe(MinHash(threshold="0.8")) == describe(MinHash(Fraction(4, 5)))


READER = Reader("jsonl", Path("/somewhere"), "*.jsonl", "s", (("text", Column("text")),))


def test_root_and_pattern_of_a_reader_are_no_part_of_its_key() -> None:
    assert describe(READER) == describe(replace(READER, root=Path("/elsewhere"), pattern="**/*"))


@pytest.mark.parametrize(
    "change",
    [
        {"source": "t"},
        {"columns": (("text", Column("body")),)},
        {"ignore": ("n",)},
        {"licence": "MIT"},
        {"on_clash": "place"},
        {"excerpts": False},
        {"max_record_bytes": 10},
        {"format": "parquet"},
    ],
)
def test_every_other_field_of_a_reader_is_part_of_its_key(change: dict[str, Any]) -> None:
    assert describe(READER) != describe(replace(READER, **change))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Column("x", "float"), "type 'float' is not one of string, int64, bool, timestamp"),
        (lambda: replace(READER, on_clash="ignore"), "on_clash='ignore' is not one of error, place"),
        (lambda: replace(READER, source="a/b"), "give a name without '/'"),
        (lambda: replace(READER, source=""), "give a name without '/'"),
        (lambda: replace(READER, columns=(("id", Column("id")),)), r"columns \['id'\] are made by curate"),
    ],
)
def test_reader_that_cannot_be_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make()


def test_name_of_a_transform_is_its_own_or_that_of_its_class() -> None:
    assert (name_of(Model()), name_of(GopherQuality())) == ("Model", "GopherQuality")
    named = type("Anything", (), {"name": "mine"})
    assert name_of(named()) == "mine"
