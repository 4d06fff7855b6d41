from __future__ import annotations

import pyarrow as pa
import pytest

from tests.curate.token_corpus import BEGIN, END, write_tokenizer
from transforms.duplicates import text_digests
from transforms.not_trained import not_trained, untrained_tokens
from transforms.outcome import SchemaError
from transforms.tokens import Tokenizer

TEXT = "Höfe, 漢字 and ten more words that stay: 👩‍🚀 the end"


@pytest.fixture(scope="module", params=[(None, None), (BEGIN, END)])
def encoder(request, tmp_path_factory):
    bos, eos = request.param
    return Tokenizer(write_tokenizer(tmp_path_factory.mktemp("tokenizer")), bos=bos, eos=eos).encoder()


def digest(text):
    return text_digests(pa.array([text], pa.large_string()))[0].as_py()


def untrained(encoder, spans, text=TEXT):
    found = untrained_tokens(encoder, text, not_trained(spans, text), digest(text), encoder.encode(text))
    return [number for first, stop in zip(found[::2], found[1::2], strict=True) for number in range(first, stop)]


@pytest.mark.parametrize("spans", [[[0, 4]], [[6, 7], [9, 12]], [[3, 3 + 1], [40, 43]], [[0, len(TEXT)]], []])
def test_tokens_with_a_character_in_a_span_are_untrained_and_no_others(encoder, spans):
    places = encoder.encode_with_offsets(TEXT)
    expected = [
        number
        for number, (start, end) in enumerate(zip(places.starts.tolist(), places.ends.tolist(), strict=True))
        if any(start < last and end > first and end > start for first, last in spans)
    ]
    assert untrained(encoder, spans) == expected
    assert bool(expected) == bool(spans)


def test_markers_of_documents_are_never_untrained(encoder):
    ids = encoder.encode(TEXT)
    found = untrained(encoder, [[0, len(TEXT)]])
    markers = int(encoder.bos is not None) + int(encoder.eos is not None)
    assert len(found) == len(ids) - markers and (encoder.bos is None or found[0] == 1)


@pytest.mark.parametrize("spans", [[[3, 3]], [[5, 2]], [[0, 4], [4, 6]], [[5, 8], [1, 2]], [[-1, 4]]])
def test_spans_that_are_none_are_refused(spans):
    with pytest.raises(ValueError, match="ascending and apart"):
        not_trained(spans, TEXT)


def test_spans_of_another_text_are_refused_with_what_to_do(encoder):
    with pytest.raises(SchemaError, match="mask after the last transform that edits texts"):
        untrained_tokens(encoder, TEXT, not_trained([[0, 4]], "other"), digest(TEXT), encoder.encode(TEXT))


@pytest.mark.parametrize(
    "value", ["", "[]", '{"spans":[[1,2,3]],"text":"00"}', '{"spans":[[0,1]]}', '{"spans":1,"text":"zz"}']
)
def test_value_that_is_none_is_refused_with_what_to_do(encoder, value):
    with pytest.raises(SchemaError, match=r"make it by not_trained\(spans, text\)"):
        untrained_tokens(encoder, TEXT, value, digest(TEXT), encoder.encode(TEXT))
