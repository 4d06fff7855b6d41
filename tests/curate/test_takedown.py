"""docs/takedown.md, followed literally: afterwards no byte of the withdrawn text is left in the store."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
import zstandard

from curate.caches.cache import TokenCache
from curate.command_line import main

PAGE = Path(__file__).parents[2] / "docs" / "takedown.md"
TEXT = "In the year of the flood the seventh windmill was sold to a baker, who kept his geese in the mill loft."
COPY = "https://mirror.example/7"
URL = "https://example.org/7"
PIECE = 12
"""Bytes of the text that must stand nowhere, whichever they are."""


def _commands() -> list[str]:
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    return [line for block in blocks for line in block.splitlines()]


def _write(folder: Path) -> None:
    (source,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    (folder / "recipe.py").write_text(source, "utf-8")
    (folder / "data").mkdir()
    others = [
        {
            "url": f"https://example.org/{n + 10}",
            "text": f"Of house {n} one reads {n * n} times that nobody of it left.",
        }
        for n in range(40)
    ]
    rows = [*others[:20], {"url": "http://Example.org/7#top", "text": TEXT}, *others[20:], {"url": COPY, "text": TEXT}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "data" / "a.jsonl").write_text(lines, "utf-8")


def _follow(commands: list[str], digest: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield (command, exit status, what it printed) of each command of the page."""
    for command in commands:
        command = command.replace("TEXT_DIGEST", digest)
        words = shlex.split(command)
        if words[0] == "echo":
            assert words[-2] == ">>"
            with Path(words[-1]).open("a", encoding="utf-8") as file:
                file.write(" ".join(words[1:-2]) + "\n")
            yield command, 0, ""
            continue
        assert words[0] == "curate"
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            status = main(words[1:])
        yield command, status, shown.getvalue()


@pytest.fixture(scope="module")
def followed(memory: Path) -> Iterator[tuple[Path, list[tuple[str, int, str]]]]:
    """The page followed in a folder: the folder, and what each command said."""
    folder = memory / "takedown"
    folder.mkdir()
    _write(folder)
    with contextlib.chdir(folder):
        commands = _commands()
        said = list(_follow(commands[:3]))
        assert any(_holds(content) for _, content in _contents(folder / "STORE")), "the text is not there to begin with"
        digest = re.findall(r"text digest ([0-9a-f]{32})", said[1][2])[0]
        said += _follow(commands[3:], digest)
    yield folder, said


def _holds(content: bytes) -> bool:
    pieces = (TEXT.encode()[first : first + PIECE] for first in range(len(TEXT) - PIECE + 1))
    return any(piece in content for piece in pieces)


def _contents(store: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (file, bytes) of every file, compressed parts decoded: tables, exchange files, tokens as text."""
    for path in sorted(path for path in store.rglob("*") if path.is_file()):
        name = path.relative_to(store).as_posix()
        yield name, path.read_bytes()
        if path.suffix == ".parquet":
            yield name, _values(pq.read_table(path))
        if path.suffix == ".exchange":
            yield from ((name, block) for block in _blocks(path.read_bytes()))
        if path.name == "cache.json":
            yield from ((name, text) for text in _texts(store, path.parent))


def _values(table: pa.Table) -> bytes:
    return "\0".join(str(row) for row in table.to_pylist()).encode()


def _blocks(content: bytes) -> Iterator[bytes]:
    """Yield what lies in an exchange file, wherever an Arrow stream or a zstd frame begins."""
    for start in (m.start() for m in re.finditer(re.escape(b"\xff\xff\xff\xff"), content)):
        with contextlib.suppress(pa.ArrowException, OSError):
            yield _values(ipc.open_stream(content[start:]).read_all())
    for start in (m.start() for m in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), content)):
        with contextlib.suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(content[start:])


def _texts(store: Path, folder: Path) -> Iterator[bytes]:
    """Yield the texts of a cache; its tokens as numbers stand in no file either, so far as they are decoded."""
    from curate.caches.tokenization import stored_tokenizer
    from curate.store import Store
    from transforms.tokens import Tokenizer

    cache = TokenCache.open(folder)
    description = cache.description
    path = stored_tokenizer(Store(store), description.tokenizer)
    encoder = Tokenizer(path, bos=description.bos_text, eos=description.eos_text).encoder()
    for document in cache:
        yield encoder.decode(np.asarray(document)).encode()


def test_page_every_command_does_what_it_says(followed: tuple[Path, list[tuple[str, int, str]]]) -> None:
    statuses = [(command, status) for command, status, _ in followed[1]]
    assert [status for _, status in statuses] == [0] * (len(statuses) - 1) + [1], statuses


def test_page_where_finds_documents_ledger_and_steps(followed: tuple[Path, list[tuple[str, int, str]]]) -> None:
    by_url, by_text = followed[1][1][2], followed[1][2][2]
    assert "document: read notes" in by_url or "document: notes" in by_url
    assert "record: a.jsonl, stored " in by_url
    assert re.search(r"tokens: tokenize \([0-9a-f]{16}\), cell all, document \d+, tokens \d+ to \d+", by_text)
    assert re.search(r"plan of texts-[0-9a-f]{16}: drawn in steps? \d+ \(row \d+, pass 0\)", by_text)
    assert "dropped: deduplicate" in by_text
    assert "equal text" in by_text


def test_page_new_result_says_why_it_went(followed: tuple[Path, list[tuple[str, int, str]]]) -> None:
    last = followed[1][-2][2]
    assert "WithdrawList, withdrawn: request 12" in last
    assert "tokens:" not in last
    assert "document:" not in last


def test_page_nothing_of_the_text_is_left_in_the_store(followed: tuple[Path, list[tuple[str, int, str]]]) -> None:
    store = followed[0] / "STORE"
    files = [path for path in store.rglob("*") if path.is_file()]
    assert files
    left = sorted({name for name, content in _contents(store) if _holds(content)})
    assert left == []


def test_page_verify_is_clean(followed: tuple[Path, list[tuple[str, int, str]]]) -> None:
    (verified,) = (said for command, _, said in followed[1] if command.startswith("curate verify"))
    assert verified.splitlines()[-1].endswith("0 problems")
