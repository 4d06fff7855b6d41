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
from curate.digests import text_digest

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


def test_nothing_of_a_withdrawn_page_is_left_where_archives_are_extracted(tmp_path: Path) -> None:
    """By URL before there is text, or by digest right after: shards of extraction hold nothing of it either."""
    from curate import Outputs, deduplicate, read_warc
    from curate.run import run
    from curate.store import Store
    from curate.upkeep.collecting import collect
    from curate.upkeep.leftovers import INNER, JOURNALS, leftovers
    from transforms import ExtractText, MaskPII, NormalizeText, WithdrawList

    pages = Path(__file__).parents[1] / "golden" / "inputs" / "pages"
    kept, listed = tmp_path / "store", tmp_path / "list.jsonl"

    def recipe() -> Outputs:
        withdraws = WithdrawList(listed)
        steps = (ExtractText(), withdraws) if "digest" in listed.read_text() else (withdraws, ExtractText())
        read = read_warc(pages, "*.warc", source="pages").apply(*steps)
        return Outputs(unique=deduplicate(read.apply(NormalizeText(), MaskPII(), name="pages")))

    listed.write_text("")
    first = run(recipe(), kept, runner="local")
    stages = {dataset.name: dataset for dataset in first.stages}
    rows = [row for batch in stages["read pages"].batches() for row in batch.to_pylist()]
    light, harbour = (next(row for row in rows if row["url"].endswith(name)) for name in ("/light", "/hafen"))
    named = [({"url": light["url"]}, light), ({"text_digest": text_digest(harbour["text"]).hex()}, harbour)]
    for line, row in named:
        listed.write_text(json.dumps({**line, "reason": "r", "date": "2026-11-30"}) + "\n")
        result = run(recipe(), kept, runner="local")
        store = Store(kept)
        collect(store, leftovers(store, [result.name], (INNER, JOURNALS)))
        words = row["text"].split()
        pieces = [" ".join(words[n : n + 4]).encode() for n in range(len(words) - 3)]
        shared = [other["text"] for other in rows if other is not row]
        own = [piece for piece in pieces if not any(piece.decode() in " ".join(text.split()) for text in shared)]
        assert len(own) > 10
        left = {name for name, content in _contents(kept) if any(piece in content for piece in own)}
        assert left == set()
        assert result.outputs["unique"].rows == first.outputs["unique"].rows - 1
