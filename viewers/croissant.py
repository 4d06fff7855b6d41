"""`croissant.json`: the result as the Croissant format 1.0 of MLCommons describes it, for catalogues and loaders.

JSON-LD with a `FileSet` per output (its Parquet files, by path below the store) and a `RecordSet` per output (its
columns). Languages, licences and counts are those of the page; title, address, creators, day and citation are those of
the recipe's `Datasheet`, and what that does not say is left out, never invented: `missing` names what the format asks
for and nobody told. Answers to the datasheet's questions stand under the vocabulary for responsible AI (RAI 1.0).

Invariants: canonical order of keys, two spaces, UTF-8: the same bytes for the same store. Cost: one path per shard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from curate.datasets import Dataset
from curate.receipts import shard_folder
from curate.recipes.datasheet import Datasheet
from curate.run import Result
from transforms.schema import UNKNOWN
from viewers.loading import Report
from viewers.numbers import counted
from viewers.rights import rights_of
from viewers.visible import plain

FILE: Final = "croissant.json"
CONFORMS: Final = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")
SPDX: Final = "https://spdx.org/licenses/"
MOST_LANGUAGES: Final = 100

REQUIRED: Final[Mapping[str, str]] = {
    "name": "name",
    "description": "purpose",
    "license": "licence",
    "url": "url",
    "creator": "creators",
    "datePublished": "published",
}
"""Properties that the format requires of a dataset, and the field of `Datasheet` that gives each."""

RAI: Final[Mapping[str, tuple[str, ...]]] = {
    "rai:dataCollection": ("collection", "collectors"),
    "rai:dataCollectionTimeframe": ("timeframe",),
    "rai:dataPreprocessingProtocol": ("preparation",),
    "rai:dataUseCases": ("uses",),
    "rai:dataLimitations": ("avoid", "gaps"),
    "rai:dataBiases": ("population",),
    "rai:dataSocialImpact": ("risks", "review"),
    "rai:personalSensitiveInformation": ("people", "confidential"),
    "rai:dataReleaseMaintenancePlan": ("maintainer", "updates", "withdrawal"),
}
"""Properties of RAI 1.0, and the answers that stand there."""

CONTEXT: Final[Mapping[str, Any]] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that Croissant 1.0 prescribes, with RAI."""

MEANINGS: Final[Mapping[str, str]] = {
    "id": "16 bytes that name the document",
    "text": "the document",
    "source": "where it comes from",
    "licence": "SPDX id, or unknown",
    "licence_basis": "who says so",
    "crawled_at": "when it was fetched",
    "extra": "columns of the input that nobody declared, as JSON",
}


@dataclass(frozen=True, slots=True)
class Files:
    """The Parquet files of an output, below the store, and its columns with their logical types."""

    output: str
    paths: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    content: str
    rows: int


def files_of(result: Result) -> list[Files]:
    """Return the files of the datasets that `result` names, or that its caches are made of."""
    made = {(dataset.name, dataset.key): dataset for dataset in result.stages}
    named = dict(result.outputs)
    if not named:
        read = {name: caches.manifest["inputs"][0] for name, caches in result.caches.items()}
        named = {name: made[entry["name"], entry["key"]] for name, entry in read.items()}
    return [_files(name, dataset) for name, dataset in named.items()]


def _files(name: str, dataset: Dataset) -> Files:
    shards = [shard["key"] for shard in dataset.shards() if shard["rows"]]
    columns = tuple((str(column), str(kind)) for column, kind in dataset.manifest["schema"])
    paths = tuple(f"{shard_folder(key)}/part.parquet" for key in shards)
    return Files(name, paths, columns, str(dataset.manifest["content"]), dataset.rows)


def missing(report: Report) -> list[str]:
    """Return the properties that the format requires and that neither recipe nor data tell."""
    return [name for name in REQUIRED if not _told(report).get(name)]


def croissant_json(report: Report, files: Sequence[Files]) -> bytes:
    """Return the content of `croissant.json` about `report`, whose outputs lie in `files`."""
    sheet = report.datasheet
    told: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS),
        **_told(report),
        "identifier": f"blake3:{report.content}",
        "version": sheet.version,
        "citeAs": sheet.citation,
        "inLanguage": _languages(report),
        **{name: _answer(sheet, fields) for name, fields in RAI.items()},
        "distribution": [_file_set(made) for made in files],
        "recordSet": [_record_set(made) for made in files],
    }
    kept = {name: value for name, value in told.items() if value}
    return json.dumps(kept, ensure_ascii=False, indent=2).encode("utf-8", "replace") + b"\n"


def _told(report: Report) -> dict[str, Any]:
    sheet = report.datasheet
    creator = {"@type": "sc:Organization", "name": plain(sheet.creators)} if sheet.creators else None
    return {
        "name": plain(sheet.name or report.name),
        "description": plain(sheet.purpose) or _description(report),
        "license": sheet.licence or _licences(report),
        "url": sheet.url,
        "creator": creator,
        "datePublished": sheet.published,
    }


def _description(report: Report) -> str:
    outputs = [f"{counted(s.manifest['rows'], 'document')} in {plain(name)}" for name, s in report.outputs.items()]
    return f"{', '.join(outputs)}, of {counted(len(report.sources), 'source')}, made with curate."


def _licences(report: Report) -> list[str]:
    """Return the addresses of the licences that documents declare."""
    found = {row.licence for stage in report.outputs.values() for row in rights_of(stage).licences}
    return [SPDX + plain(name) for name in sorted(found - {UNKNOWN, ""}) if _is_spdx(name)]


def _is_spdx(name: str) -> bool:
    return len(name) < 60 and name.isascii() and all(c.isalnum() or c in ".-+" for c in name)


def _languages(report: Report) -> list[str]:
    counts: dict[str, int] = {}
    for stage in report.outputs.values():
        for language, group in stage.statistics.get("groups", {}).get("language", {}).items():
            counts[language] = counts.get(language, 0) + group["documents"]
    ordered = sorted(counts, key=lambda language: (-counts[language], language))
    return [plain(language) for language in ordered[:MOST_LANGUAGES]]


def _answer(sheet: Datasheet, fields: Sequence[str]) -> str:
    parts = [getattr(sheet, name) for name in fields]
    return plain(" ".join(" ".join(part) if isinstance(part, tuple) else part for part in parts if part))


def _file_set(made: Files) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{plain(made.output)}-files",
        "name": f"{plain(made.output)}-files",
        "description": f"{counted(made.rows, 'document')}; content digest blake3:{made.content}",
        "encodingFormat": "application/x-parquet",
        "includes": list(made.paths),
    }


def _record_set(made: Files) -> dict[str, Any]:
    name = plain(made.output)
    fields = [field for column, kind in made.columns for field in _fields(name, column, kind)]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


TYPES: Final[Mapping[str, str]] = {"string": "sc:Text", "bool": "sc:Boolean", "date": "sc:Date"}


def _fields(output: str, column: str, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the field of a column; nested and binary ones are left to whoever opens the files."""
    data_type = TYPES.get(kind) or _data_type(kind)
    if data_type is None:
        return
    name = plain(column)
    field = {
        "@type": "cr:Field",
        "@id": f"{output}/{name}",
        "name": name,
        "dataType": data_type,
        "source": {"fileSet": {"@id": f"{output}-files"}, "extract": {"column": column}},
    }
    yield {**field, "description": MEANINGS[column]} if column in MEANINGS else field


def _data_type(kind: str) -> str | None:
    if kind.startswith(("int", "uint")):
        return "sc:Integer"
    if kind.startswith(("float", "decimal")):
        return "sc:Float"
    return "sc:DateTime" if kind.startswith("timestamp") else None
