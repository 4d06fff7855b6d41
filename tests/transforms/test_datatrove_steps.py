from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from datatrove.pipeline.extractors import Trafilatura
from datatrove.pipeline.extractors.base import BaseExtractor
from datatrove.pipeline.filters import (
    GopherQualityFilter,
    LambdaFilter,
    RegexFilter,
    SamplerFilter,
)
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.pipeline.formatters.base import BaseFormatter

from curate.configuration import describe
from tests.transforms.documents import batch_of
from transforms.datatrove_steps import Datatrove
from transforms.extraction import ExtractText
from transforms.schema import records
from transforms.user_function import UserFunctionError

FEW = "Only a few words."
ENOUGH = "The boats of the harbour have to be painted with care, and that takes the whole of a long week. " * 6


class Counted(BaseFilter):
    """Counts words into the metadata; refuses and rewrites some."""

    name = "counted"

    def __init__(self, most: int = 5) -> None:
        super().__init__()
        self.most = most

    def filter(self, doc: Any) -> bool | tuple[bool, str]:
        if "broken" in doc.text:
            raise ValueError("broken")
        doc.metadata["words"] = len(doc.text.split(" "))
        doc.text = doc.text.replace("cut this", "")
        return (False, "too long") if doc.metadata["words"] > self.most else True


class Loud(BaseFormatter):
    name = "loud"

    def format(self, text: str) -> str:
        return text.replace("!", "")


class Paragraphs(BaseExtractor):
    name = "paragraphs"

    def __init__(self) -> None:
        super().__init__()

    def extract(self, text: str) -> str:
        return text.split("<p>")[1].split("</p>")[0]


def test_datatrove_filter_gives_its_verdict_and_reason() -> None:
    outcome = Datatrove(GopherQualityFilter()).apply(batch_of([FEW, ENOUGH]))
    assert outcome.kept.column("text").to_pylist() == [ENOUGH]
    (dropped,) = outcome.dropped.to_pylist()
    assert (dropped["transform"], dropped["reason"]) == ("datatrove GopherQualityFilter", "gopher_short_doc")


def test_datatrove_filter_without_a_reason_drops_as_dropped() -> None:
    outcome = Datatrove(RegexFilter("few")).apply(batch_of([FEW]))
    assert outcome.dropped.column("reason").to_pylist() == ["dropped"]


def test_datatrove_filter_that_rewrites_and_writes_is_in_the_books() -> None:
    transform = Datatrove(Counted(), writes={"words": pa.int32()})
    outcome = transform.apply(batch_of(["a b", "now cut this", "a b c d e f g"]))
    assert outcome.kept.schema == transform.output_schema(batch_of([]).schema)
    assert outcome.kept.column("text").to_pylist() == ["a b", "now "]
    assert outcome.kept.column("words").to_pylist() == [2, 3]
    (edit,) = outcome.edits.to_pylist()
    assert (edit["reason"], edit["cut"], edit["inserted"]) == ("rewritten", 8, 0)
    assert outcome.dropped.column("reason").to_pylist() == ["too long"]


def test_datatrove_formatter_edits() -> None:
    outcome = Datatrove(Loud()).apply(batch_of(["no!", "yes"]))
    assert outcome.kept.column("text").to_pylist() == ["no", "yes"]
    assert outcome.edits.column("cut").to_pylist() == [1]


def test_datatrove_own_formatter_masks_alike_in_any_order() -> None:
    texts = ["Write to jane@stone.org today", "or to john@stone.org"]
    masked = Datatrove(PIIFormatter()).apply(batch_of(texts)).kept.column("text").to_pylist()
    assert not any("stone.org" in text for text in masked)
    assert Datatrove(PIIFormatter()).apply(batch_of(texts[1:])).kept.column("text").to_pylist() == masked[1:]


def test_datatrove_extractor_makes_text_of_pages() -> None:
    batch = batch_of([""], schema=records())
    page = pa.array([b"<p>Inside.</p>"], batch.schema.field("payload").type)
    batch = batch.set_column(batch.schema.get_field_index("payload"), batch.schema.field("payload"), page)
    outcome = ExtractText(extractor=Datatrove(Paragraphs())).apply(batch)
    assert outcome.kept.column("text").to_pylist() == ["Inside."]


def test_datatrove_extractor_outside_of_extraction_is_refused() -> None:
    with pytest.raises(TypeError, match="give it to ExtractText"):
        Datatrove(Paragraphs()).output_schema(batch_of([]).schema)


def test_extraction_by_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match="choose one of"):
        ExtractText(extractor=object())  # type: ignore[arg-type]


def test_datatrove_step_that_raises_names_the_document() -> None:
    batch = batch_of(["broken"])
    with pytest.raises(UserFunctionError, match=batch.column("id")[0].as_py().hex()):
        Datatrove(Counted()).apply(batch)


def test_datatrove_step_is_named_by_class_attributes_and_source() -> None:
    told = [Datatrove(step).behaviour for step in (Counted(), Counted(6), RegexFilter("a"), RegexFilter("b"))]
    assert len(set(told)) == 4
    assert Datatrove(Counted()) == Datatrove(Counted())
    assert pickle.loads(pickle.dumps(Datatrove(Counted()))).behaviour == told[0]
    assert "datatrove" in describe(Datatrove(Counted()))["libraries"]


def test_datatrove_lambda_is_named_by_its_source() -> None:
    one = LambdaFilter(lambda doc: len(doc.text) > 1)
    two = LambdaFilter(lambda doc: len(doc.text) > 2)
    assert Datatrove(one).behaviour != Datatrove(two).behaviour


def test_datatrove_step_with_something_that_has_no_description_asks_for_a_version() -> None:
    step = Counted()
    step.most = object()  # type: ignore[assignment]
    with pytest.raises(ValueError, match="state the function's version"):
        Datatrove(step)
    assert Datatrove(step, version=1).behaviour.endswith("Counted version 1")


def test_datatrove_step_that_depends_on_other_documents_is_refused() -> None:
    with pytest.raises(ValueError, match=r"use transforms\.Sample"):
        Datatrove(SamplerFilter(0.5))
    with pytest.raises(ValueError, match="deduplicate=False"):
        Datatrove(Trafilatura())


@pytest.mark.parametrize("step", [object(), len])
def test_datatrove_of_something_else_is_refused(step: object) -> None:
    with pytest.raises(TypeError, match="neither a filter"):
        Datatrove(step)


def test_datatrove_formatter_writes_no_metadata() -> None:
    with pytest.raises(TypeError, match="writes no metadata"):
        Datatrove(Loud(), writes={"words": pa.int32()})


class Lacking(BaseFormatter):
    name = "lacking"

    def format(self, text: str) -> str:
        raise ImportError("install what is missing")


def test_datatrove_step_whose_package_is_missing_is_not_ready() -> None:
    with pytest.raises(UserFunctionError, match="install what is missing"):
        Datatrove(Lacking()).ready()
    Datatrove(GopherQualityFilter()).ready()
