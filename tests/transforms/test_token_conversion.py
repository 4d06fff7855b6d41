"""Ranks of tiktoken and SentencePiece models as tokenizer.json: the ids of their own packages, made small here."""

from __future__ import annotations

import base64
import io
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from tests.transforms.test_tokens import PROSE
from transforms.adversarial_texts import adversarial_texts
from transforms.token_conversion import PATTERNS, from_sentencepiece, from_tiktoken
from transforms.token_file import TokenizerError
from transforms.token_training import train_bpe
from transforms.tokens import CANARY, Tokenizer

END = "<|endoftext|>"
HOSTILE = [CANARY, "", " ", *PROSE, *adversarial_texts([END, "<s>"])]


def library(content: bytes) -> Any:
    made = tokenizers.Tokenizer.from_str(content.decode())
    made.encode_special_tokens = True
    return made


def ids(model: Any, text: str) -> list[int]:
    return list(model.encode(text, add_special_tokens=False).ids)


@cache
def ranks() -> dict[bytes, int]:
    """Ranks of a small byte-level BPE, and a token that no merges lead to."""
    from transforms.token_conversion import byte_letters

    bytes_of = {letter: byte for byte, letter in enumerate(byte_letters())}
    vocab = json.loads(train_bpe(PROSE * 3, 420))["model"]["vocab"]
    found = {bytes(bytes_of[letter] for letter in token): index for token, index in vocab.items()}
    return {**found, b"\n    return {'a'": len(found)}


def rank_file() -> bytes:
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks().items())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_ranks_give_the_ids_of_tiktoken(pattern: str) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    special = {END: len(ranks()) + 3}
    oracle = tiktoken.Encoding("small", pat_str=PATTERNS[pattern], mergeable_ranks=ranks(), special_tokens=special)
    made = library(from_tiktoken(rank_file(), pattern, special))
    assert [ids(made, text) for text in HOSTILE] == [oracle.encode_ordinary(text) for text in HOSTILE]
    made.encode_special_tokens = False
    assert ids(made, END) == [special[END]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[1:], "lacks 1 of the 256 bytes"),
        (lambda lines: [*lines, b"YQ== x"], "no file of ranks"),
        (lambda lines: [*lines, b"!!!! 9000"], "no file of ranks"),
        (lambda lines: [*lines, base64.b64encode(b"new") + b" 7"], "have one id"),
    ],
)
def test_ranks_that_are_none_are_refused(change: Any, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        from_tiktoken(b"\n".join(change(rank_file().splitlines())), "cl100k_base", {})


def trained(**options: Any) -> bytes:
    sentencepiece = pytest.importorskip("sentencepiece")
    out = io.BytesIO()
    words = [word for text in [*PROSE, CANARY] for word in (text, *text.split())] * 4
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words), model_writer=out, minloglevel=9, hard_vocab_limit=False,
        **{"vocab_size": 420, "num_threads": 1, **options},
    )  # fmt: skip
    return out.getvalue()


PLAIN: dict[str, Any] = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
MODELS: dict[str, dict[str, Any]] = {
    "bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 700, **PLAIN, "split_digits": True},
    "unknown": {"model_type": "bpe", "character_coverage": 0.98, **PLAIN},
    "spaces": {
        "model_type": "bpe", **PLAIN, "add_dummy_prefix": False, "user_defined_symbols": ["<tab>", "\n"],
        "allow_whitespace_only_pieces": True,
    },
    "squeezed": {"model_type": "bpe", "normalization_rule_name": "identity"},
    "unigram": {"model_type": "unigram", **PLAIN},
    "unigram bytes": {"model_type": "unigram", "byte_fallback": True, "vocab_size": 700, **PLAIN},
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece_model_gives_the_ids_of_sentencepiece(name: str) -> None:
    content = trained(**MODELS[name])
    oracle = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=content)
    made = library(from_sentencepiece(content))
    texts = [text for text in HOSTILE if "unigram" not in name or len(text) < 300]
    wrong = [text for text in texts if ids(made, text) != oracle.encode(text)]
    assert len(wrong) <= ("unigram" in name) * len(texts) // 100, wrong[:3]  # equally likely ways of cutting
    before_runs = CANARY.partition("!!!!")[0]
    assert ids(made, before_runs) == oracle.encode(before_runs) and "" not in wrong
    if name == "bytes":
        assert made.decode(ids(made, before_runs)) == before_runs.replace("▁", " ")


def test_model_with_normal_forms_gives_the_ids_of_sentencepiece_on_the_canary() -> None:
    content = trained(model_type="bpe")
    oracle = pytest.importorskip("sentencepiece").SentencePieceProcessor(model_proto=content)
    made = library(from_sentencepiece(content))
    assert [ids(made, text) for text in (CANARY, *PROSE)] == [oracle.encode(text) for text in (CANARY, *PROSE)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "char"}, "kind 4"),
        ({"model_type": "bpe", "treat_whitespace_as_suffix": True}, "other ids for it"),
        ({"model_type": "bpe", "user_defined_symbols": ["<tab>"]}, "other ids for it"),
    ],
)
def test_model_that_cannot_be_converted_exactly_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        from_sentencepiece(trained(**options))


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 40, b"\x0a\x80", b"\x0b1234"])
def test_file_that_is_no_model_is_refused(content: bytes) -> None:
    with pytest.raises(TokenizerError, match="SentencePiece model"):
        from_sentencepiece(content)


def test_tokenizer_of_every_kind_of_file_is_named_by_the_json_that_it_becomes(tmp_path: Path) -> None:
    (tmp_path / "a.tiktoken").write_bytes(rank_file())
    made = Tokenizer(tmp_path / "a.tiktoken", eos=END, pattern="cl100k_base", special={END: 900})
    (tmp_path / "b.json").write_bytes(made.content())
    assert made == Tokenizer(tmp_path / "b.json", eos=END)
    assert made.encoder().encode("lamp")[-1] == 900 and made.encoder().vocabulary == 901
    with pytest.raises(TokenizerError, match=r"a\.tiktoken: ranks do not say .*pattern=, one of r50k_base"):
        Tokenizer(tmp_path / "a.tiktoken")
    (tmp_path / "c.model").write_bytes(trained(**MODELS["bytes"]))
    spelled = Tokenizer(tmp_path / "c.model", bos="<s>", eos="</s>").encoder()
    tokens = spelled.encode("lamp <s>")
    assert tokens[0] == 1 and tokens[-1] == 2 and 1 not in tokens[1:] and spelled.decode(tokens[1:-1]) == "lamp <s>"
    (tmp_path / "d.model").write_bytes(b"no model")
    with pytest.raises(TokenizerError, match=r"d\.model: no SentencePiece model"):
        Tokenizer(tmp_path / "d.model")
