"""The recipe of `curate audit`: what can be said of somebody else's Parquet from the files alone.

Which column holds the text, the address, the licence and the language is found by name, the text where no name tells by
size: the largest column of strings. Files are grouped by these columns and by the folder that they lie in, and each
group is a source. Documents are read, their language is told; then, beside one another and each on all documents: equal
and near duplicates are looked for, and benchmarks, personal data and what usual filters would take. What the files do
not say (addresses, licences, how texts were chosen) is named as a known gap.

Invariants: the same files give the same recipe and the same page; files stay where they are and are only read; one that
cannot be opened is read as far as it goes, and what is damaged is on record. Cost: a footer per file; then that of an
ordinary run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from curate.configuration import ConfigurationError
from curate.readers.reader import Column
from curate.recipes.datasheet import Datasheet
from curate.recipes.duplicates import deduplicate
from curate.recipes.graph import Dataset
from curate.recipes.reading import read_parquet
from curate.recipes.recipe import Outputs
from transforms.contamination import Benchmark, Decontaminate
from transforms.gopher_rules import GopherQuality, GopherRepetition
from transforms.language import Language
from transforms.language_model import default_model
from transforms.minhash import MinHash
from transforms.pii import MaskPII
from transforms.switch import Switch

NAMES: Final = {
    "text": ("text", "content", "raw_content", "body", "document", "article", "markdown", "code", "raw_text"),
    "url": ("url", "uri", "source_url", "page_url", "warc_target_uri", "link"),
    "licence": ("licence", "license", "license_type", "spdx"),
    "language": ("language", "lang"),
}
"""What columns are called, the likeliest first; case does not matter."""

SOURCES: Final = 32
"""Folders that are told apart; with more of them all files are one source."""

ALL: Final = "all of "
"""How outputs begin that hold every document of a source; the others are those that rules would leave."""

NAMED: Final = 5
"""Files named in a sentence."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file below the root with the columns that were found: ours → its own; `text` is always there."""

    path: str
    columns: tuple[tuple[str, str], ...]
    others: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """What is read: files by source, and those that are not, each with the reason."""

    root: Path
    sources: dict[str, tuple[Found, ...]]
    left_out: dict[str, str]


def look_into(root: Path, text: str | None = None) -> Audit:
    """Return what is found in the Parquet files below `root`; `text` names the column of texts.

    Raises:
        ConfigurationError: there is no Parquet file, or none with texts.
    """
    paths = sorted(path.relative_to(root).as_posix() for path in root.glob("**/*.parquet") if path.is_file())
    if not paths:
        raise ConfigurationError(f"{root} has no Parquet files: name the folder that they are below")
    found: list[Found] = []
    left_out: dict[str, str] = {}
    broken: list[str] = []
    for path in paths:
        try:
            columns = _columns(root / path, text)
        except (pa.ArrowException, OSError, ValueError):
            broken.append(path)
            continue
        if columns is None:
            left_out[path] = "no column of texts" if text is None else f"no column {text!r} of texts"
        else:
            found.append(Found(path, *columns))
    if not found:
        raise ConfigurationError(f"{root}: {_why(paths, left_out)}; name the column of texts with --text")
    like = {_folder(file.path): file.columns for file in reversed(found)}
    found += [Found(path, like.get(_folder(path), found[0].columns), ()) for path in broken]  # damage is recorded later
    return Audit(root, _by_source(root, found), left_out)


def _why(paths: Sequence[str], left_out: dict[str, str]) -> str:
    if not left_out:
        return f"none of {len(paths):,} files can be opened as Parquet"
    path, reason = next(iter(left_out.items()))
    return f"{path} has {reason}"


def _columns(path: Path, text: str | None) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]] | None:
    """Return the columns found in a file, and the others; None where it has no texts."""
    file = pq.ParquetFile(path)
    kinds = {item.name: item.type for item in file.schema_arrow}
    strings = [name for name, kind in kinds.items() if _is_text(kind) and file.schema_arrow.names.count(name) == 1]
    chosen = {ours: _named(strings, names) for ours, names in NAMES.items()}
    chosen["text"] = text if text is not None else chosen["text"] or _largest(file, strings)
    if chosen["text"] not in strings:
        return None
    told = tuple((ours, name) for ours, name in chosen.items() if name)
    others = tuple(sorted(set(kinds) - {name for _, name in told}))
    return told, others


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _named(columns: Sequence[str], names: Sequence[str]) -> str | None:
    lower = {column.lower(): column for column in reversed(columns)}
    return next((lower[name] for name in names if name in lower), None)


def _largest(file: pq.ParquetFile, strings: Sequence[str]) -> str | None:
    """Return the column of strings that takes most bytes, unpacked; the first of equal ones."""
    sizes = dict.fromkeys(strings, 0)
    for group in range(file.metadata.num_row_groups):
        row = file.metadata.row_group(group)
        for place in range(row.num_columns):
            column = row.column(place)
            if column.path_in_schema in sizes:
                sizes[column.path_in_schema] += column.total_uncompressed_size
    return max(sizes, key=lambda name: sizes[name], default=None)


def _folder(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def _by_source(root: Path, found: Sequence[Found]) -> dict[str, tuple[Found, ...]]:
    """Return files by source: by top folder, and where those of one have other columns by these, too."""
    apart = len({_folder(file.path) for file in found}) <= SOURCES
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Found]] = {}
    for file in found:
        folder = (_folder(file.path) if apart else "") or root.resolve().name or "files"
        groups.setdefault((folder, file.columns), []).append(file)
    named: dict[str, tuple[Found, ...]] = {}
    for (folder, columns), files in sorted(groups.items()):
        number = sum(name == folder for name, _ in groups)
        name = folder if number == 1 else f"{folder} ({', '.join(own for _, own in columns)})"
        while name in named:
            name += "'"
        named[name] = tuple(files)
    return named


def lay_out(audit: Audit, view: Path) -> dict[str, Path]:
    """Return source → a folder below `view` with links to its files, so that each is read with its own columns."""
    places = {}
    for number, (source, files) in enumerate(audit.sources.items()):
        places[source] = view / str(number)
        for file in files:
            link = places[source] / file.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to((audit.root / file.path).resolve())
    return places


def audit_recipe(
    audit: Audit,
    view: Path,
    *,
    licence: str | None = None,
    benchmarks: Sequence[Benchmark] = (),
    model: Path | None = None,
    sample: str | None = None,
) -> Outputs:
    """Return the recipe that looks at all of `audit`; `view` is a folder for links to its files.

    Args:
        audit: what was found.
        view: an empty folder that stays until the recipe has run.
        licence: SPDX id of all files, where their columns do not say.
        benchmarks: benchmarks to look for.
        model: model of languages; None is the pinned one, if it is there.
        sample: the share of documents that the run will look at, to be said; None is all.
    """
    told = model or (default_model() if default_model().is_file() else None)
    places = lay_out(audit, view)
    read = [_read(source, places[source], audit, licence) for source in audit.sources]
    documents = [_with_language(part, source, told) for part, source in zip(read, audit.sources, strict=True)]
    steps = [*([Decontaminate(benchmarks, action="tag")] if benchmarks else []), MaskPII(), *_filters(told is not None)]
    outputs: dict[str, Any] = {ALL + source: part for source, part in zip(audit.sources, documents, strict=True)}
    outputs["without duplicates"] = deduplicate(*documents, method=MinHash(), name="without duplicates")
    for source, part in zip(audit.sources, documents, strict=True):
        outputs[f"after usual filters: {source}"] = part.apply(*steps, name=f"after usual filters: {source}")
    sheet = _sheet(audit, licence, benchmarks, told)
    if sample is not None:
        said = f"All numbers are of a sample: a share of {sample} of the documents, chosen by digests of their ids."
        sheet = replace(sheet, gaps=(said, *sheet.gaps))
    return Outputs(datasheet=sheet, **outputs)


def _read(source: str, place: Path, audit: Audit, licence: str | None) -> Dataset:
    columns: dict[str, str | Column] = {}
    for ours, own in audit.sources[source][0].columns:
        if ours == "language":
            columns["stated_language"] = Column(own)
        elif ours != "licence" or licence is None:
            columns[ours] = Column(own) if ours == "url" else own
    return read_parquet(place, source=source, columns=columns, licence=licence, max_damaged=1.0)


def _with_language(part: Dataset, source: str, model: Path | None) -> Dataset:
    name = f"{ALL}{source}"
    return (part if model is None else part.apply(Language(model=model), name=name)).keep(name)


def _filters(knows_languages: bool) -> Iterator[GopherRepetition | GopherQuality | Switch]:
    """Yield Gopher's filters; stop words, which are English, only where the language is known."""
    yield GopherRepetition()
    if knows_languages:
        yield Switch("language", en=[GopherQuality()], others=[GopherQuality(min_stop_words=0)])
    else:
        yield GopherQuality(min_stop_words=0)


def _sheet(audit: Audit, licence: str | None, benchmarks: Sequence[Benchmark], model: Path | None) -> Datasheet:
    files = [file for found in audit.sources.values() for file in found]
    texts = sorted({own for file in files for ours, own in file.columns if ours == "text"})
    contents = f"A row of a Parquet file; its text is the column {' or '.join(texts)}, found by curate audit."
    gaps = tuple(_gaps(audit, files, licence, benchmarks, model))
    return Datasheet(contents=contents, gaps=gaps)


def _gaps(
    audit: Audit, files: Sequence[Found], licence: str | None, benchmarks: Sequence[Benchmark], model: Path | None
) -> Iterator[str]:
    yield (
        "This page was made from the files alone. How their texts were chosen, extracted, filtered and joined before, "
        "and what was thrown away, is not known."
    )
    for ours, what in (
        ("url", "addresses: hosts, countries and concentration are unknown for them"),
        ("licence", "licences: they are unknown for them"),
    ):
        without = [file.path for file in files if ours not in dict(file.columns)]
        if without and not (ours == "licence" and licence):
            some = f"{len(without):,} of {len(files):,} files have no"
            yield f"{some if len(without) < len(files) else 'No file has a'} column of {what} ({_some(without)})."
    if licence:
        yield f"The licence {licence} was asserted by whoever ran the audit."
    yield "Robots.txt, opt-outs and dates of crawling: not in the files."
    if model is None:
        yield "Languages are unknown: the model is not there (curate fetch lid)."
    if not benchmarks:
        yield "No benchmark was given, so none was looked for: curate audit --benchmark NAME=FILE."
    if audit.left_out:
        reasons = [f"{path} ({reason})" for path, reason in audit.left_out.items()]
        yield f"{len(reasons):,} files were not read: {_some(reasons)}."
    if others := sorted({column for file in files for column in file.others}):
        yield f"Columns that were not looked at: {_some(others, 20)}."


def _some(names: Sequence[str], most: int = NAMED) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")
