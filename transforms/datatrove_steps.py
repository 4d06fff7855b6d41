"""Steps of datatrove as transforms: its filters, formatters and extractors, and users' own of these three kinds.

A filter decides, and may rewrite the text and add metadata; a formatter rewrites; an extractor goes to `ExtractText`,
which decodes pages for it. Steps run in the engine's child processes, a document at a time. What names a step in keys
is its class (with its source where it is not datatrove's), its public attributes and the version of datatrove.

Invariants: the outcome for a document depends on that document alone, so a step that draws random numbers from document
to document, or remembers earlier ones, is refused. Cost: that of the step, and a Python object per document.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa

from transforms.behaviour import describe_value
from transforms.canonical import canonical_json
from transforms.outcome import Outcome, kept, require
from transforms.schema import set_columns, with_columns
from transforms.user_function import UserFunctionError, changed, valid_text

NOT_ITS_BEHAVIOUR: Final = frozenset({"stats", "exclusion_writer", "batch_size", "timeout"})
"""Attributes of steps that change no outcome here."""

DERIVED: Final = frozenset({"tldextractor", "banned_subwords_automaton"})
"""Attributes of datatrove's own steps that are made of their other attributes and of datatrove's files."""


@dataclass(frozen=True, slots=True, init=False)
class Datatrove:
    """Applies a step of datatrove: `Datatrove(GopherQualityFilter())`.

    A filter drops a document under the reason that it gives ("dropped" where it gives none); texts that it or a
    formatter rewrites are edits. The step sees the other columns as metadata.
    """

    step: Any = field(compare=False)
    behaviour: str
    writes: tuple[tuple[str, pa.DataType], ...]

    version: ClassVar[int] = 1
    libraries: ClassVar[tuple[str, ...]] = ("datatrove",)
    isolated: ClassVar[bool] = True

    def __init__(
        self, step: Any, *, version: int | str | None = None, writes: Mapping[str, pa.DataType] | None = None
    ) -> None:
        """State the step.

        Args:
            step: an object of a subclass of datatrove's BaseFilter, BaseFormatter or BaseExtractor.
            version: names the step's behaviour in keys where its attributes cannot be described.
            writes: metadata that a filter sets and the columns' types: {"language_score": pa.float64()}.

        Raises:
            TypeError: it is no such step.
            ValueError: its outcome depends on other documents, or there is no version and an attribute cannot be
                described.
        """
        kind = _kind(step)
        if writes and kind != "filter":
            raise TypeError(f"{type(step).__name__} is no filter, so it writes no metadata: leave out writes=")
        _refuse_memory(step)
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "behaviour", _behaviour(step, version))
        object.__setattr__(self, "writes", tuple(sorted((writes or {}).items())))

    @property
    def name(self) -> str:
        """The name in ledgers and pages: "datatrove GopherQualityFilter"."""
        return f"datatrove {type(self.step).__name__}"

    def description(self) -> dict[str, Any]:
        """Return what names the behaviour, as canonical JSON values."""
        return {
            "class": "Datatrove",
            "version": self.version,
            "libraries": _versions(self.step, self.libraries),
            "fields": {"step": self.behaviour, "writes": {name: str(kind) for name, kind in self.writes}},
        }

    def output_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return `schema` with the columns of `writes`.

        Raises:
            SchemaError: there is no column `text`.
            TypeError: the step is an extractor.
        """
        if _kind(self.step) == "extract":
            raise TypeError(f"{self.name} makes text of pages: give it to ExtractText(extractor=…)")
        require(schema, self.name, text=pa.large_string())
        return with_columns(schema, *(pa.field(name, kind) for name, kind in self.writes))

    def ready(self) -> None:
        """Load what the step loads at its first document. What it makes of that document does not matter.

        Raises:
            UserFunctionError: a package that the step needs is not installed.
        """
        if _kind(self.step) == "extract":
            return  # `ExtractText` tries a page
        try:
            self._one({"text": "Ready.", "id": bytes(16), "url": "https://example.org/", "language": "en"})
        except UserFunctionError as error:
            if isinstance(error.__cause__, ImportError):
                raise

    def extract(self, html: str) -> str:
        """Return the text of a page, by an extractor; what it raises is for `ExtractText` to record."""
        text = self.step.extract(html)
        return text if isinstance(text, str) else ""

    def apply(self, batch: pa.RecordBatch) -> Outcome:
        """Apply the step to each row.

        Raises:
            UserFunctionError: the step raised, or returned something that its kind does not.
        """
        dropped: list[dict[str, Any]] = []
        edits: list[dict[str, Any]] = []
        rows: list[int] = []
        documents: list[_Applied] = []
        for index, row in enumerate(batch.to_pylist()):
            applied = self._one(row)
            if applied.reason is not None:
                dropped.append({"id": row["id"], "transform": self.name, "reason": applied.reason})
                continue
            cut, inserted = changed(row["text"], applied.text)
            if cut or inserted:
                counts = {"cut": cut, "inserted": inserted}
                edits.append({"id": row["id"], "transform": self.name, "reason": "rewritten", **counts})
            rows.append(index)
            documents.append(applied)
        return kept(self._kept(batch, rows, documents, bool(edits)), dropped=dropped, edits=edits)

    def _kept(self, batch: pa.RecordBatch, rows: list[int], documents: list[_Applied], edited: bool) -> pa.RecordBatch:
        passed = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))
        columns = {
            pa.field(name, kind): pa.array([document.metadata.get(name) for document in documents], kind)
            for name, kind in self.writes
        }
        if edited:
            text = pa.array([document.text for document in documents], pa.large_string())
            columns[batch.schema.field("text")] = text
        return set_columns(passed, columns) if columns else passed

    def _one(self, row: dict[str, Any]) -> _Applied:
        """Return what the step makes of one row."""
        identity = row["id"].hex()
        try:
            applied = _keep_or_drop(self.step, row) if _kind(self.step) == "filter" else _format(self.step, row)
        except Exception as error:
            raise UserFunctionError(f"{self.name} raised for document {identity}: {error!r}") from error
        if not isinstance(applied.text, str):
            raise UserFunctionError(f"{self.name} made no text but {applied.text!r} of document {identity}")
        return applied


@dataclass(frozen=True, slots=True)
class _Applied:
    """What a step made of a document: `reason` says why it is dropped, None that it is kept."""

    text: str
    reason: str | None
    metadata: Mapping[str, Any]


def _restart(step: Any) -> None:
    """Let the step's replacers begin with their first replacement: datatrove's take turns from document to document."""
    for value in vars(step).values():
        if isinstance(getattr(value, "_replace_i", None), int):
            value._replace_i = 0


def _keep_or_drop(step: Any, row: dict[str, Any]) -> _Applied:
    from datatrove.data import Document
    from datatrove.pipeline.filters.base_filter import get_filter_result

    metadata = {name: value for name, value in row.items() if name not in ("id", "text")}
    document = Document(text=row["text"], id=row["id"].hex(), metadata=metadata)
    result, reason = get_filter_result(step.filter_batch([document])[0])
    return _Applied(_text(document.text), None if result else str(reason or "dropped"), document.metadata)


def _format(step: Any, row: dict[str, Any]) -> _Applied:
    _restart(step)
    return _Applied(_text(step.format(row["text"])), None, {})


def _text(text: Any) -> Any:
    return valid_text(text) if isinstance(text, str) else text


def _kind(step: Any) -> str:
    """Return "filter", "format" or "extract".

    Raises:
        TypeError: `step` is none of them.
    """
    from datatrove.pipeline.extractors.base import BaseExtractor
    from datatrove.pipeline.filters.base_filter import BaseFilter
    from datatrove.pipeline.formatters.base import BaseFormatter

    for name, base in (("filter", BaseFilter), ("format", BaseFormatter), ("extract", BaseExtractor)):
        if isinstance(step, base):
            return name
    raise TypeError(f"Datatrove({step!r}): neither a filter, a formatter nor an extractor of datatrove")


def _versions(step: Any, libraries: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of datatrove and of what the step says that it needs, as far as that is a distribution."""
    needed = [name for each in type(step).__mro__ for name in getattr(each, "_requires_dependencies", ())]
    versions = {}
    for name in sorted({*libraries, *(name if isinstance(name, str) else name[1] for name in needed)}):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _refuse_memory(step: Any) -> None:
    """Raise ValueError for a step that draws random numbers from document to document, or remembers earlier ones."""
    name, values = type(step).__name__, vars(step)
    for value in values.values():
        drawn = getattr(value, "__self__", value)
        if isinstance(drawn, (np.random.Generator, np.random.RandomState)) and values.get("keep_fraction") != 0:
            raise ValueError(
                f"{name} draws random numbers from document to document, so what it keeps would depend on their order: "
                "use transforms.Sample, which draws by a document's digest"
            )
    if values.get("deduplicate") is True:
        raise ValueError(f"{name}(deduplicate=True) remembers earlier pages: pass deduplicate=False")


def _behaviour(step: Any, version: int | str | None) -> str:
    """Return what names the behaviour of `step` in keys: its class, and a stated version or a digest."""
    name = f"{type(step).__module__}.{type(step).__qualname__}"
    if version is not None:
        return f"{name} version {version}"
    digest = hashlib.blake2b(canonical_json(_described(step, step)).encode(), digest_size=16)
    return f"{name} {digest.hexdigest()}"


def _described(value: Any, step: Any) -> Any:
    """Return the class and the public attributes of an object as canonical JSON values."""
    own = type(value).__module__.split(".")[0] != "datatrove"
    attributes = {
        name: _attribute(each, step)
        for name, each in vars(value).items()
        if not name.startswith("_") and name not in NOT_ITS_BEHAVIOUR | DERIVED
    }
    source = describe_value(type(value), type(step)) if own else None
    return {"class": type(value).__qualname__, "source": source, "attributes": attributes}


def _attribute(value: Any, step: Any) -> Any:
    if isinstance(value, types.MethodType) and isinstance(value.__self__, np.random.Generator):
        return None  # never asked: `_refuse_memory`
    if isinstance(value, functools.partial):
        return [_attribute(part, step) for part in (value.func, list(value.args), value.keywords)]
    if isinstance(value, (list, tuple)):
        return [_attribute(item, step) for item in value]
    if type(value).__module__.split(".")[0] == "datatrove" and not isinstance(value, (type, types.FunctionType)):
        return _described(value, step)
    return describe_value(value, type(step))
