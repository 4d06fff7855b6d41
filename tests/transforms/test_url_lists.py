from __future__ import annotations

import gzip
import io
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from transforms import url_lists
from transforms.many_digests import short_digests
from transforms.segmentation import text_buffers
from transforms.url_lists import ListError, URLList, WordList, halves

LINES = b"""# made for tests
bad.example   # a comment
  0.0.0.0 tracker.example
https://Example.ORG:443/a/b/
example.org/a?page=2&q=1
*.zz
.gov.zz
1.2.3.4
B\xc3\xbccher.example

bad.example
"""
KEYS = {
    "bad.example": 2,
    "tracker.example": 3,
    "example.org/a/b": 4,
    "example.org/a?page=2&q=1": 5,
    "zz": 6,
    "gov.zz": 7,
    "1.2.3.4": 8,
    "xn--bcher-kva.example": 9,
}


@pytest.fixture(autouse=True)
def node_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(url_lists, "own_folder", lambda: tmp_path)
    yield tmp_path / "url_lists"
    url_lists._mapped.cache_clear()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def lines_of(listed: URLList, *keys: str) -> list[int]:
    return listed.index().lines(halves(short_digests(*text_buffers(pa.array(keys, pa.large_string()))))).tolist()


def test_list_has_each_entry_with_its_first_line(tmp_path: Path) -> None:
    listed = URLList(write(tmp_path / "bad.txt", LINES))
    assert listed.name == "bad" and len(listed.index()) == len(KEYS)
    assert lines_of(listed, *KEYS, "example", "bad.example/", "") == [*KEYS.values(), -1, -1, -1]


def test_list_plain_gzip_and_archive_members_are_equal(tmp_path: Path) -> None:
    plain = URLList(write(tmp_path / "a.txt", LINES))
    packed = URLList(write(tmp_path / "b.txt.gz", gzip.compress(LINES)))
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("lists/adult")
        member.size = len(LINES)
        tar.addfile(member, io.BytesIO(LINES))
    inside = URLList(write(tmp_path / "c.tar.gz", archive.getvalue()), member="lists/adult")
    assert inside.name == "adult"
    indexes = [listed.index().entries for listed in (plain, packed, inside)]
    assert all(np.array_equal(indexes[0], index) for index in indexes[1:])


def test_list_read_in_small_blocks_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = URLList(write(tmp_path / "a.txt", LINES)).index().entries
    monkeypatch.setattr(url_lists, "BLOCK", 7)
    assert np.array_equal(URLList(write(tmp_path / "b.txt", LINES[:-1])).index().entries, whole)


def test_list_identity_is_content_not_place(tmp_path: Path) -> None:
    one, other = (URLList(write(tmp_path / f"{name}.txt", LINES), name="same") for name in "ab")
    assert one == other and hash(one) == hash(other)
    assert one != URLList(write(tmp_path / "c.txt", LINES + b"more.example\n"), name="same")


def test_list_index_is_made_once_per_node(tmp_path: Path, node_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = URLList(write(tmp_path / "a.txt", LINES))
    entries = listed.index().entries
    assert sorted(path.suffix for path in node_folder.iterdir()) == [".lock", ".npy"]
    url_lists._mapped.cache_clear()
    monkeypatch.setattr(url_lists, "_entries", lambda listed: pytest.fail("made again"))
    assert np.array_equal(listed.index().entries, entries)


def test_list_asked_for_by_many_at_once_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed, made = URLList(write(tmp_path / "a.txt", LINES)), url_lists._entries
    calls: list[URLList] = []

    def slowly(listed: URLList) -> url_lists.Words:
        calls.append(listed)
        time.sleep(0.1)
        return made(listed)

    monkeypatch.setattr(url_lists, "_entries", slowly)
    with ThreadPoolExecutor(4) as pool:
        lengths = list(pool.map(lambda _: len(listed.index()), range(4)))
    assert lengths == [len(KEYS)] * 4 and len(calls) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a.example\nco.uk\n", r"line 2: 'co\.uk' is a public suffix.*\*\.co\.uk"),
        (b"\nlocalhost\n", "line 2: 'localhost' is a public suffix"),
        (b"a.example\nbad one.example\n", "line 2: 'bad one.example' names no host"),
        (b"http:///path\n", "line 1: 'http:///path' names no host"),
        (b"x" * (1 << 21), "line 1: more than"),
        (gzip.compress(LINES)[:-20], "damaged"),
    ],
)
def test_list_with_a_bad_line_is_an_error_naming_it(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ListError, match=message):
        URLList(write(tmp_path / "bad.txt", content)).index()


def test_list_public_suffixes_can_be_ignored(tmp_path: Path) -> None:
    listed = URLList(write(tmp_path / "a.txt", b"xxx\n0\nco.uk\na.example\n*.edu\n"), suffixes="ignore")
    assert lines_of(listed, "xxx", "0", "co.uk", "a.example", "edu") == [-1, -1, -1, 4, 5]


def test_list_absent_changed_or_without_the_member_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ListError, match="none"):
        URLList(tmp_path / "none.txt")
    listed = URLList(write(tmp_path / "a.txt", LINES))
    write(tmp_path / "a.txt", b"other.example\n")
    with pytest.raises(ListError, match="changed"):
        listed.index()
    with tarfile.open(tmp_path / "c.tar", "w"):
        pass
    with pytest.raises(ListError, match="no member 'x'"):
        URLList(tmp_path / "c.tar", member="x").index()
    with pytest.raises(ValueError, match="refuse or ignore"):
        URLList(tmp_path / "a.txt", suffixes="match")  # type: ignore[arg-type]


def test_list_empty_or_not_utf8_is_read(tmp_path: Path) -> None:
    assert len(URLList(write(tmp_path / "empty.txt", b"")).index()) == 0
    listed = URLList(write(tmp_path / "latin.txt", b"caf\xe9.example\na.example\n"))
    assert lines_of(listed, "a.example") == [2]


def test_words_are_letters_and_digits_of_lines_that_count(tmp_path: Path) -> None:
    listed = WordList(write(tmp_path / "w.txt", b"Two Words\n#not\n\nx-1\nx1\n"))
    assert listed.words() == ("twowords", "x1")
    write(tmp_path / "w.txt", b"other\n")
    with pytest.raises(ListError, match="changed"):
        listed.words()
