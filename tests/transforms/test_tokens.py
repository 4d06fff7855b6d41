"""The contract of tokenizing: ids of the library for all plain text, control tokens never from text, whole spans."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from curate.configuration import describe
from transforms.canonical import canonical_json
from transforms.token_file import SpecialText, TokenizerError, is_control_shape, read_tokenizer
from transforms.token_training import train_bpe
from transforms.tokens import CANARY, Encoded, Encoder, Tokenizer, check_markers

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
PROSE = [
    "The lamp burned all night, and nobody in the lodge slept.",
    "Nobody slept; the lamp burned 120 hours. Die Lampe brannte die ganze Nacht.",
    "def lamp(night):\n    return night + 1\n",
    "नदी शांत थी। 灯は一晩中ともっていた。",
]
END = "<|endoftext|>"
PIECES = st.sampled_from(
    [END, "<|turn|>", "<|endof", "text|>", "<s>", "</s>", "<", "|", ">", " ", "\n", "lamp", "é", "灯"]
)
hostile = st.one_of(st.text(max_size=40), st.lists(PIECES, max_size=12).map("".join))


def with_added(content: bytes, *tokens: dict[str, Any], **changes: Any) -> bytes:
    """Return the tokenizer.json with further added tokens, and other top-level values."""
    value = json.loads(content)
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": False}
    value["added_tokens"] += [{**plain, **token} for token in tokens]
    value.update(changes)
    return json.dumps(value).encode()


@cache
def bpe() -> bytes:
    """A byte-level BPE whose file leaves one control token unmarked, and adds an ordinary token of three spaces."""
    content = train_bpe(PROSE * 3, 400, [END])
    size = 1 + max(json.loads(content)["model"]["vocab"].values())
    return with_added(content, {"id": size, "content": "<|turn|>"}, {"id": size + 1, "content": "   "})


@cache
def unigram() -> bytes:
    """A unigram model that holds <s> and </s> as pieces, as those of SentencePiece do."""
    pieces = [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *((letter, -3.0) for letter in "▁<>/slampnight|é")]
    model = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    model.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    model.decoder = tokenizers.decoders.Metaspace()
    model.add_special_tokens(["<unk>", "<s>", "</s>"])
    return str(model.to_str()).encode()


def encoder_of(content: bytes, bos: str | None = None, eos: str | None = None) -> Encoder:
    return Encoder(read_tokenizer(content, [text for text in (bos, eos) if text]), bos, eos)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "tokenizer.json").write_bytes(bpe())
    return tmp_path / "tokenizer.json"


ENCODERS: dict[str, Callable[[], Encoder]] = {
    "bpe": cache(lambda: encoder_of(bpe(), None, END)),
    "bpe with both": cache(lambda: encoder_of(bpe(), "<|turn|>", END)),
    "unigram": cache(lambda: encoder_of(unigram(), "<s>", "</s>")),
}
encoders = pytest.mark.parametrize("name", ENCODERS)


@encoders
@given(texts=st.lists(hostile, max_size=5))
@settings(max_examples=80)
def test_encode_any_text_gives_no_control_token_and_both_markers(name: str, texts: list[str]) -> None:
    encoder = ENCODERS[name]()
    encoded = encoder.encode_batch(texts)
    assert len(encoded) == len(texts)
    for row in range(len(texts)):
        ids = encoded.ids[encoded.offsets[row] : encoded.offsets[row + 1]].tolist()
        first, last = [[] if marker is None else [marker] for marker in (encoder.bos, encoder.eos)]
        inside = ids[len(first) : len(ids) - len(last)]
        assert ids == first + inside + last
        assert not set(inside) & (set(encoder.controls.values()) - {encoder.unknown})


@encoders
@given(texts=st.lists(hostile, max_size=5), cut=st.integers(0, 5))
@settings(max_examples=30)
def test_encode_any_batching_gives_the_same_ids(name: str, texts: list[str], cut: int) -> None:
    encoder = ENCODERS[name]()
    whole = encoder.encode_batch(texts).ids.tolist()
    parts = encoder.encode_batch(texts[:cut]).ids.tolist() + encoder.encode_batch(texts[cut:]).ids.tolist()
    assert whole == parts == [index for text in texts for index in encoder.encode(text).tolist()]


@given(hostile)
@settings(max_examples=150)
def test_encode_text_without_control_tokens_equals_the_library(text: str) -> None:
    for content, name in ((bpe(), "bpe"), (unigram(), "unigram")):
        library, encoder = library_of(content), ENCODERS[name]()
        if not any(control in text for control in encoder.controls):
            inside = encoder.encode(text)[int(encoder.bos is not None) : -1]
            assert inside.tolist() == library.encode(text, add_special_tokens=False).ids


@given(hostile)
@settings(max_examples=150)
def test_encode_text_with_control_tokens_equals_a_library_that_does_not_know_them(text: str) -> None:
    text = text.replace("   ", "")  # the ordinary added token, which that library does not know either
    library = library_of(json.dumps({**json.loads(bpe()), "added_tokens": []}).encode())
    assert ENCODERS["bpe"]().encode(text)[:-1].tolist() == library.encode(text, add_special_tokens=False).ids


@cache
def library_of(content: bytes) -> Any:
    return tokenizers.Tokenizer.from_str(content.decode())


@given(hostile)
@settings(max_examples=100)
def test_bytes_of_any_text_survive_byte_level_tokens(text: str) -> None:
    encoder = ENCODERS["bpe"]()
    assert encoder.decode(encoder.encode(text)) == text + END


@encoders
@given(text=hostile)
@settings(max_examples=80)
def test_spans_have_the_ids_of_encode_and_lie_in_order(name: str, text: str) -> None:
    encoder = ENCODERS[name]()
    spans = encoder.encode_with_offsets(text)
    assert spans.ids.tolist() == encoder.encode(text).tolist()
    assert len(spans.starts) == len(spans.ends) == len(spans.ids)
    assert (spans.starts <= spans.ends).all() and (np.diff(spans.starts) >= 0).all()
    assert spans.ends[-1] == len(text)
    if name == "bpe":  # every character belongs to a token
        covered = {
            place for a, b in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True) for place in range(a, b)
        }
        assert covered == set(range(len(text)))


def test_spans_of_a_text_name_the_characters_of_each_token() -> None:
    text = "The lamp 灯 é"
    spans = ENCODERS["bpe with both"]().encode_with_offsets(text)
    assert (spans.starts[0], spans.ends[0]) == (0, 0) and (spans.starts[-1], spans.ends[-1]) == (len(text),) * 2
    parts = [text[a:b] for a, b in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)]
    assert " lamp" in parts and "".join(dict.fromkeys(parts[1:-1])).replace(" ", "")[:3] == "The"


def test_text_that_looks_like_a_control_token_is_counted() -> None:
    encoder = ENCODERS["bpe"]()
    encoded = encoder.encode_batch(["plain", f"a{END}{END}b<|turn|>", "<|turn", "   "])
    assert encoded.special_text == ({}, {END: 2, "<|turn|>": 1}, {}, {})


def test_special_text_of_overlapping_tokens_counts_the_longest() -> None:
    assert SpecialText(("<a>", "<a><b>")).count("<a><b><a>") == {"<a><b>": 1, "<a>": 1}
    assert SpecialText(()).count("<a>") == {}


def test_unmarked_control_shape_is_a_control_token_and_other_added_tokens_are_text() -> None:
    encoder = ENCODERS["bpe"]()
    assert set(encoder.controls) == {END, "<|turn|>"}
    spaces = library_of(bpe()).token_to_id("   ")
    assert encoder.encode("   ").tolist() == [spaces, encoder.eos]
    assert [is_control_shape(text) for text in ("<|x|>", "<｜x｜>", "<||>", "<x>", "|>")] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_control_token_that_a_model_holds_as_a_piece_is_spelled_out() -> None:
    library, encoder = library_of(unigram()), ENCODERS["unigram"]()
    assert library.token_to_id("<s>") in library.encode("a<s>b", add_special_tokens=False).ids
    assert encoder.decode(encoder.encode("p<s>l")[1:-1]).replace(" ", "") == "p<s>l"
    assert encoder.encode_batch(["p<s>l"]).special_text == ({"<s>": 1},)


def test_model_with_a_control_token_of_one_letter_is_refused_where_it_comes_up() -> None:
    pieces = [("<unk>", 0.0), ("x", -1.0), ("y", -1.0)]
    model = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    model.add_special_tokens(["x"])
    encoder = encoder_of(str(model.to_str()).encode())
    assert encoder.encode("yy").tolist() == [2, 2]
    with pytest.raises(TokenizerError, match="single letter of 'x'"):
        encoder.encode("yxy")


def test_truncation_padding_and_template_of_a_file_are_left_out() -> None:
    library = tokenizers.Tokenizer.from_str(bpe().decode())
    library.enable_truncation(3)
    library.enable_padding(length=50)
    index = library.token_to_id(END)
    library.post_processor = tokenizers.processors.TemplateProcessing(f"{END} $A", special_tokens=[(END, index)])
    encoder = encoder_of(str(library.to_str()).encode())
    text = PROSE[0]
    assert encoder.encode(text).tolist() == library_of(bpe()).encode(text, add_special_tokens=False).ids


def test_text_of_a_million_characters_is_encoded_whole() -> None:
    encoder = ENCODERS["bpe"]()
    text = "The lamp burned. " * 20_000
    once = encoder.encode("The lamp burned. ")[:-1].tolist()
    assert encoder.decode(encoder.encode(text)) == text + END
    assert len(encoder.encode(text)) <= 20_000 * len(once) + 1
    for run in (" " * 200_000, "a" * 200_000, "\n" * 200_000):
        assert encoder.decode(encoder.encode(run)) == run + END


@pytest.mark.parametrize(
    ("content", "markers", "message"),
    [
        (b"{", [], "no tokenizer.json"),
        (b"[]", [], "no tokenizer.json"),
        (b'{"added_tokens": [], "model": {"type": "BPE"}}', [], "no tokenizer.json .*vocab"),
        (bpe(), ["<s>"], r"no added token '<s>' to mark documents with; it has '   ', '<\|endoftext\|>'"),
        (with_added(bpe(), model={**json.loads(bpe())["model"], "dropout": 0.1}), [], "dropout"),
    ],
)
def test_unusable_tokenizer_is_refused_with_a_reason(content: bytes, markers: list[str], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        read_tokenizer(content, markers)


def test_file_that_the_library_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"added_tokens": [], "model": {"type": "BPE", "vocab": {"a": 0}, "merges": 3}}')
    with pytest.raises(TokenizerError, match=r"t\.json: the tokenizers library refuses it"):
        Tokenizer(tmp_path / "t.json").encoder()


def test_identity_is_the_file_and_the_policy_and_not_the_path(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.json").write_bytes(path.read_bytes())
    (tmp_path / "other.json").write_bytes(path.read_bytes() + b" ")
    one, copy = Tokenizer(path, eos=END), Tokenizer(str(tmp_path / "copy.json"), eos=END)
    assert one == copy and hash(one) == hash(copy) and describe(one) == describe(copy)
    assert str(tmp_path) not in canonical_json(describe(one))
    assert describe(one)["libraries"] == {"tokenizers": tokenizers.__version__}
    others = [Tokenizer(path), Tokenizer(path, bos=END), Tokenizer(tmp_path / "other.json", eos=END)]
    assert all(describe(other) != describe(one) for other in others)
    assert pickle.loads(pickle.dumps(one)).encoder().encode("lamp").tolist() == one.encoder().encode("lamp").tolist()


def test_tokenizer_file_that_is_missing_or_changed_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"nowhere\.json: No such file"):
        Tokenizer(tmp_path / "nowhere.json")
    tokenizer = Tokenizer(path)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(TokenizerError, match="when the tokenizer was named"):
        tokenizer.encoder()


def test_canary_has_the_same_ids_again_and_decodes_to_itself(path: Path) -> None:
    encoder = Tokenizer(path, eos=END).encoder()
    assert encoder.canary() == encoder_of(bpe(), None, END).canary()
    assert encoder.decode(encoder.canary()) == CANARY + END


def test_markers_that_are_wrong_are_noticed() -> None:
    table = np.zeros(10, np.bool_)
    table[[1, 2]] = True

    def check(*documents: list[int]) -> None:
        offsets = np.cumsum([0, *map(len, documents)])
        check_markers(np.array([i for d in documents for i in d], np.uint32), offsets, 1, 2, table)

    check([1, 5, 2], [1, 2])
    for wrong in ([5, 5, 2], [1, 5, 5], [1, 1, 2], [1], [], [1, 5, 2, 2]):
        with pytest.raises(TokenizerError, match="document 1 of a batch"):
            check([1, 5, 2], wrong)


def test_wide_vocabularies_need_four_bytes() -> None:
    assert encoder_of(bpe()).dtype == np.uint16
    last = with_added(bpe(), {"id": encoder_of(bpe()).vocabulary, "content": "<|more|>"})
    assert read_tokenizer(last, []).vocabulary == encoder_of(bpe()).vocabulary + 1
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(1 << 16)}, unk_token="w0"))
    assert encoder_of(str(model.to_str()).encode()).dtype == np.uint16
    model.add_special_tokens(["<|end|>"])
    encoder = encoder_of(str(model.to_str()).encode(), None, "<|end|>")
    assert (encoder.dtype, encoder.eos, encoder.unknown) == (np.uint32, 1 << 16, 0)


REAL = [("gpt2", END), ("cl100k_base", END), ("deepseek", "<｜end▁of▁sentence｜>")]


@pytest.mark.parametrize(("name", "eos"), REAL)
def test_real_tokenizer_gives_the_ids_of_the_library_on_real_texts(name: str, eos: str) -> None:
    path, corpus = SHARED / "tokenizers" / f"{name}.tokenizer.json", SHARED / "corpora" / "multidomain.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    column = pq.read_table(corpus, columns=["text"]).column("text")
    texts = [*column.take(list(range(0, len(column), 40))).to_pylist(), "", " " * 5000, "\x00\ud7ff\U0010ffff"]
    texts = [text[:3000] for text in texts]
    encoder = Tokenizer(path, eos=eos).encoder()
    plain = [text for text in texts if not any(control in text for control in encoder.controls)]
    assert len(plain) > 100
    encoded: Encoded = encoder.encode_batch(plain)
    library = tokenizers.Tokenizer.from_file(str(path))
    expected = [encoding.ids for encoding in library.encode_batch(plain, add_special_tokens=False)]
    assert encoded.ids.tolist() == [index for ids in expected for index in [*ids, encoder.eos]]
    assert encoder.decode(encoder.canary()) == CANARY + eos
    controls = list(encoder.controls)
    hostile_text = "x".join(controls[:: max(1, len(controls) // 40)])
    assert not set(encoder.encode(hostile_text)[:-1].tolist()) & set(encoder.controls.values())
    assert encoder.decode(encoder.encode(hostile_text)) == hostile_text + eos


def test_tokenizer_without_an_unknown_token_has_none_though_a_word_is_called_none() -> None:
    content = train_bpe(["None of None is None, and None is it. None None None"] * 9, 300)
    assert "None" in json.loads(content)["model"]["vocab"]
    assert read_tokenizer(content, ()).unknown is None
