"""CSV and TSV: fields as the standard library reads them, bad rows recorded, every byte accounted for."""

from __future__ import annotations

import csv
import io
import random
from itertools import pairwise

import pytest

from curate.configuration import ConfigurationError
from curate.readers.events import Read, Refused
from curate.readers.forms import CsvForm
from curate.readers.lines import cut_at
from curate.readers.reader import Column
from tests.curate.reading import gzipped, kinds, lost, read_as, values

TYPED = {"n": Column("n", "int64"), "ok": Column("ok", "bool"), "crawled_at": "at"}


def test_rows_become_documents_with_quoted_line_breaks_and_typed_columns() -> None:
    data = b'\xef\xbb\xbf"id",text,n,ok,at\r\n1,"a ""b"",\nc",42,true,2024-01-01\r\n2,plain,,no,\r\n'
    events = read_as("csv", data, columns=TYPED)
    assert values(events, "text", "n", "ok", "crawled_at", "extra") == [
        ('a "b",\nc', 42, True, 1704067200000, '{"id":"1"}'),
        ("plain", None, None, None, '{"id":"2","ok":"no"}'),
    ]
    assert kinds(events) == ["header"]


@pytest.mark.parametrize("seed", range(8))
def test_fields_are_those_that_the_standard_library_reads(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        rows = [["".join(chance.choices('ab,"\n é', k=chance.randrange(6))) for _ in range(3)] for _ in range(4)]
        rows = [row for row in rows if "".join(row)]
        written = io.StringIO(newline="")
        csv.writer(written, lineterminator=chance.choice(["\n", "\r\n"])).writerows([["text", "b", "c"], *rows])
        events = read_as("csv", written.getvalue().encode(), columns={"b": "b", "c": "c"})
        assert values(events, "text", "b", "c") == [tuple(row) for row in rows]


def test_bad_rows_cost_themselves() -> None:
    data = b'text,b\n1,x\n2\n3,x,y\n4,"a"b\n5,"open\n6,x\n7,5" disk\n\xff,x\n\n9,"x\ny"\n'
    events = read_as("csv", data, columns={"b": "b"})
    assert values(events, "text", "b") == [("1", "x"), ("6", "x"), ("7", '5" disk'), ("9", "x\ny")]
    assert lost(events) == ["bad row"] * 4 + ["not UTF-8"]
    assert next((e.offset, e.length) for e in events if isinstance(e, Refused)) == (11, 2)


def test_quote_that_never_closes_costs_one_line() -> None:
    data = b'text,b\n1,"open\n' + b"2,x\n" * 500
    events = read_as("csv", data, max_record_bytes=1000)
    assert len(values(events, "text")) == 500 and lost(events) == ["bad row"]


def test_line_above_the_limit_is_refused_and_reading_goes_on() -> None:
    data = b"text\n" + b"x" * 5000 + b"\nshort\n"
    events = read_as("csv", data, max_record_bytes=100)
    assert values(events, "text") == ["short"] and lost(events) == ["record too large"]


def test_dialect_of_ones_own_is_obeyed() -> None:
    form = CsvForm(delimiter=";", quote="'", escape="\\", names=("id", "text"))
    data = b"1;'it''s';\n2;'a;\\'b'\n3;x\\;y\n4;'it''s'\n"
    events = read_as("csv", data, form=form)
    assert values(events, "text") == ["a;'b", "x;y", "it's"] and lost(events) == ["bad row"]
    assert values(read_as("csv", b'id\ttext\n1\t"a\n', "a.tsv.gz", CsvForm(quote=None)), "text") == []  # not gzip
    packed = gzipped(b'id\ttext\n1\t"a\n')
    assert values(read_as("csv", packed, "a.tsv.gz", CsvForm(quote=None)), "text") == ['"a']
    assert values(read_as("csv", "text\nÄ\n".encode("cp1252"), form=CsvForm(encoding="cp1252")), "text") == ["Ä"]


def test_header_with_a_name_twice_tells_the_columns_apart() -> None:
    events = read_as("csv", b"text,x,x,\na,1,2,3\n")
    assert values(events, "extra") == ['{"#4":"3","x#2":"1","x#3":"2"}']


@pytest.mark.parametrize("given", [{"delimiter": "::"}, {"quote": ","}, {"encoding": "utf-16"}, {"names": ("a", "a")}])
def test_dialect_that_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError):
        CsvForm(**{"delimiter": ",", **given})  # type: ignore[arg-type]


@pytest.mark.parametrize("escape", [None, "\\"])
def test_any_bytes_end_in_rows_and_refusals_of_all_of_them(escape: str | None) -> None:
    chance = random.Random(escape)
    for _ in range(600):
        data = b"text,b\n" + bytes(chance.choices(b'ab,"\n\r\\\xc3', k=chance.randrange(60)))
        read_as("csv", data, form=CsvForm(escape=escape), max_record_bytes=chance.choice([20, 1000]))


@pytest.mark.parametrize("separator", [b"\n", b"\n\n", b"aab"])
def test_records_do_not_depend_on_the_blocks_that_are_read(separator: bytes) -> None:
    chance = random.Random(separator)
    for _ in range(200):
        data = bytes(chance.choices(b"ab\n", k=chance.randrange(60)))
        *whole, last = data.split(separator)
        expected = [part + separator for part in whole] + [last] * bool(last)
        cuts = sorted([0, len(data), *(chance.randrange(len(data) + 1) for _ in range(5))])
        blocks = [data[a:b] for a, b in pairwise(cuts)]
        assert [record for record, _ in cut_at(blocks, separator, 1000)] == expected


def test_many_quotes_that_are_not_doubled_take_linear_time() -> None:
    events = read_as("csv", b'text,b\n"a\n' + b'",b"c,"d\n' * 20_000)
    assert not [event for event in events if isinstance(event, Read)]
