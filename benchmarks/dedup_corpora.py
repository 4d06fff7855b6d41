"""Texts to deduplicate, made from ../shared by fixed functions: passages with injected edits, and a corpus for speed.

`passages` cuts ../shared/data/corpora/multidomain.parquet at paragraph borders into passages of 200 to 2,000 words, and
adds copies with edits of known kinds. `speed_batches` yields these and the visible text of the 1,678 pages of
../shared/data/extraction, again and again with words replaced, until the size asked for is reached; of less than
`WHOLE` bytes it takes fewer passages with all their copies, so that a small corpus repeats as much as a large one.
`write_worlds` writes files that share no text, each with as many duplicates as the others. All choices are drawn from
BLAKE3 of a seed and a counter, or from `mix`, so they depend on no library's generator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from blake3 import blake3
from numba import njit

from transforms.parts import RepeatedParts, find_parts
from transforms.segmentation import find_words, text_buffers
from transforms.word_hashes import mix

SHARED: Final = Path(__file__).parents[2] / "shared" / "data"
CORPUS: Final = SHARED / "corpora" / "multidomain.parquet"
PAGES: Final = tuple(SHARED / "extraction" / f"{name}.parquet" for name in ("aeb", "wcxb_dev", "wcxb_dev2"))
LEAST, MOST, SPREAD = 200, 2000, 400
"""A passage ends with the paragraph in which it reaches a number of words drawn from LEAST to LEAST + SPREAD."""
RATES: Final = (1 / 400, 1 / 150, 1 / 90, 1 / 60, 1 / 50, 1 / 45, 1 / 42, 1 / 30, 1 / 15, 1 / 6)
"""Shares of words replaced; at 1 / 45 the Jaccard similarity of word 5-grams is about .8."""
HEADER: Final = "Permission is granted to anyone to read this passage as long as nobody minds the following words.\n\n"
SCHEMA: Final = pa.schema(
    [("id", pa.large_string()), ("text", pa.large_string()), ("of", pa.int64()), ("edit", pa.large_string())]
)
WHOLE: Final = 200_000_000
"""Bytes of the speed corpus from which on it has all passages and pages."""


@dataclass(slots=True)
class Draw:
    """Numbers from 0 to below 1, by BLAKE3 of a name and a counter."""

    name: str
    count: int = 0

    def number(self) -> float:
        """Return the next number."""
        self.count += 1
        return int.from_bytes(blake3(f"{self.name} {self.count}".encode()).digest(6), "big") / (1 << 48)

    def below(self, end: int) -> int:
        """Return the next whole number from 0 to below `end`."""
        return int(self.number() * end)


def texts_of(path: Path) -> pa.LargeStringArray:
    """Return the column "text" of a Parquet file as one array."""
    column = pq.read_table(path, columns=["text"]).column("text").cast(pa.large_string())
    return pa.concat_arrays(column.chunks)


def cut_into_passages(text: pa.LargeStringArray) -> list[str]:
    """Return passages of 200 to 2,000 words that begin and end at paragraph borders, without what fits into none."""
    draw, found = Draw("passages"), find_parts(text, RepeatedParts("paragraph", 1))
    starts, ends = found.cut_starts, found.ends
    words = find_words(text).starts
    counts = np.searchsorted(words, ends) - np.searchsorted(words, starts)
    passages: list[str] = []
    for document in range(len(text)):
        first, size, target = int(found.offsets[document]), 0, LEAST + draw.below(SPREAD)
        for part in range(first, int(found.offsets[document + 1])):
            if size + counts[part] > MOST:
                first, size = part, 0
            if counts[part] > MOST:
                first = part + 1
                continue
            size += int(counts[part])
            if size >= target:
                passages.append(found.data[starts[first] : ends[part]].tobytes().decode())
                first, size, target = part + 1, 0, LEAST + draw.below(SPREAD)
        last = int(found.offsets[document + 1]) - 1
        if size >= LEAST:
            passages.append(found.data[starts[first] : ends[last]].tobytes().decode())
    return passages


def passages(text: pa.LargeStringArray | None = None) -> pa.Table:
    """Return passages and edited copies (`SCHEMA`): `of` is the row of the passage that a copy was made of, else -1."""
    originals = cut_into_passages(texts_of(CORPUS) if text is None else text)
    draw = Draw("edits")
    copies: list[tuple[int, str, str]] = []
    for row, original in enumerate(originals):
        if draw.number() < 0.25:
            copies.extend((row, kind, copy) for kind, copy in _copies(original, draw))
    texts = originals + [copy for _, _, copy in copies]
    ids = [f"passage {row}" for row in range(len(originals))] + [
        f"copy {i} of {of}" for i, (of, _, _) in enumerate(copies)
    ]
    of = [-1] * len(originals) + [of for of, _, _ in copies]
    kinds = [""] * len(originals) + [kind for _, kind, _ in copies]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip((ids, texts, of, kinds), SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def _copies(text: str, draw: Draw) -> Iterator[tuple[str, str]]:
    """Yield edited copies of one passage: the kind of edit, and the text."""
    kind = draw.below(10)
    if kind == 0:
        yield "equal", text
    elif kind == 1:
        yield "typography", text.replace("\n", " \n").replace(". ", ".  ")
    elif kind == 2:
        yield "header", HEADER + text
    elif kind == 3:
        for version in range(1, 3 + draw.below(6)):
            yield (
                "growing",
                text + "".join(f"\n\nNote {i} of {len(text)} was added to version {i}." for i in range(version)),
            )
    elif kind == 4:
        yield "cut", text[: int(len(text) * (0.6 + 0.4 * draw.number()))]
    else:
        for _ in range(1 + draw.below(3)):
            rate, seed = RATES[draw.below(len(RATES))], draw.below(1 << 40)
            yield (
                f"words 1/{round(1 / rate)}",
                with_words_replaced(pa.array([text], pa.large_string()), np.array([rate]), seed)[0].as_py(),
            )


def with_words_replaced(text: pa.LargeStringArray, rates: npt.NDArray[np.float64], seed: int) -> pa.LargeStringArray:
    """Return `text` with about that share of the words of each replaced by letters of the same length in bytes."""
    words, (data, bounds) = find_words(text), text_buffers(text)
    first = int(bounds[0])
    content = data[first : int(bounds[-1])].copy()
    _replace(content, words.documents, words.starts - first, words.ends - first, rates, np.uint64(seed))
    offsets = np.ascontiguousarray(bounds - first)
    return pa.LargeStringArray.from_buffers(len(text), pa.py_buffer(offsets), pa.py_buffer(content))


@njit(cache=False)  # type: ignore[untyped-decorator]
def _replace(
    content: Any, documents: Any, starts: Any, ends: Any, rates: npt.NDArray[np.float64], seed: np.uint64
) -> None:
    for document in range(len(documents) - 1):
        bound = np.uint64(rates[document] * 4294967296.0)
        for word in range(documents[document], documents[document + 1]):
            drawn = mix(seed * np.uint64(0x9E3779B97F4A7C15) + np.uint64(word))
            if drawn >> np.uint64(32) < bound:
                for place in range(starts[word], ends[word]):
                    drawn = mix(drawn)
                    content[place] = np.uint8(97 + drawn % np.uint64(26))


def visible_texts(every: int = 1) -> pa.LargeStringArray:
    """Return the visible text of one page of `every` of ../shared, without markup, those without text left out."""
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    found = []
    for path in PAGES:
        for page in pq.read_table(path, columns=["html"]).column("html")[::every]:
            content = page.as_py()
            try:
                html = content.decode()
            except UnicodeDecodeError:
                html = bytes_to_str(content, detect_encoding(content))
            found.append(extract_plain_text(html, main_content=False))
    return pa.array([text for text in found if text], pa.large_string())


def thinned(table: pa.Table, every: int) -> pa.Table:
    """Return one passage of `every` of those that `passages` returns, with all its copies."""
    of = table.column("of").to_numpy()
    family = np.where(of < 0, np.arange(len(of)), of)
    return table.filter(pa.array(family % every == 0))


def joined(*columns: pa.ChunkedArray) -> pa.LargeStringArray:
    """Return columns one after the other as one array."""
    return pa.concat_arrays([chunk for column in columns for chunk in column.chunks])


def size_of(text: pa.LargeStringArray) -> int:
    """Return the bytes of all texts."""
    return int(pc.sum(pc.binary_length(text)).as_py() or 0)


def speed_batches(table: pa.Table, size: int, rows: int = 2048) -> Iterator[pa.RecordBatch]:
    """Yield documents ("id", "text") of `size` bytes or little more, in rounds over passages (`table`) and pages.

    Round 0 has all texts as they are; in later rounds each text draws how many of its words are others, up to 1 / 5.
    """
    rounds, every = np.array([0.0, 1 / 200, 1 / 45, 1 / 15, 1 / 5]), max(1, WHOLE // size)
    text = joined(thinned(table, every).column("text"), pa.chunked_array([visible_texts(every)]))
    done, number = 0, 0
    while True:
        for first in range(0, len(text), rows):
            part = text.slice(first, rows)
            seed = number * len(text) + first
            if number > 0:
                drawn = np.array([int(mix(np.uint64(seed + row)) >> np.uint64(32)) for row in range(len(part))])
                part = with_words_replaced(part, rounds[drawn % len(rounds)], seed)
            ids = pa.array([f"{number}/{first + row}" for row in range(len(part))], pa.large_string())
            yield pa.record_batch([ids, part], names=["id", "text"])
            done += size_of(part)
            if done >= size:
                return
        number += 1


def write_speed_corpus(path: Path, table: pa.Table, size: int) -> tuple[int, int]:
    """Write the speed corpus of `table`, which `passages` returned, as one zstd Parquet file.

    Returns its documents and bytes of text.
    """
    documents, total = 0, 0
    schema = pa.schema([("id", pa.large_string()), ("text", pa.large_string())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in speed_batches(table, size):
            writer.write_batch(batch)
            documents += batch.num_rows
            total += size_of(batch.column("text"))
    return documents, total


def write_worlds(folder: Path, table: pa.Table, size: int, worlds: int) -> tuple[int, int]:
    """Write `worlds` files of passages and their copies, of about `size` bytes each; return documents and bytes of one.

    In each world every word is another one of the same length, so that files share nothing and repeat as much within
    themselves as the passages do: so many times the documents are so many times the work, but for what sorting costs.
    """
    text = joined(thinned(table, max(1, size_of(joined(table.column("text"))) // size)).column("text"))
    folder.mkdir(parents=True)
    for world in range(worlds):
        ids = pa.array([f"{world}/{row}" for row in range(len(text))], pa.large_string())
        made = pa.table({"id": ids, "text": in_world(text, world)})
        pq.write_table(made, folder / f"{world:03d}.parquet", compression="zstd", row_group_size=2048)
    return len(text), size_of(text)


def in_world(text: pa.LargeStringArray, world: int) -> pa.LargeStringArray:
    """Return `text` with each word replaced by letters of the same length in bytes: equal words by equal ones."""
    words, (data, bounds) = find_words(text), text_buffers(text)
    first = int(bounds[0])
    content = data[first : int(bounds[-1])].copy()
    _translate(content, words.starts - first, words.ends - first, np.uint64(world))
    return pa.LargeStringArray.from_buffers(
        len(text), pa.py_buffer(np.ascontiguousarray(bounds - first)), pa.py_buffer(content)
    )


@njit(cache=False)  # type: ignore[untyped-decorator]
def _translate(content: Any, starts: Any, ends: Any, world: np.uint64) -> None:
    for word in range(len(starts)):
        drawn = mix(world + np.uint64(1))
        for place in range(starts[word], ends[word]):
            drawn = mix(drawn ^ np.uint64(content[place]))
        for place in range(starts[word], ends[word]):
            drawn = mix(drawn)
            content[place] = np.uint8(97 + drawn % np.uint64(26))
