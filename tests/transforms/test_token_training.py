"""Training a byte-level BPE: the same bytes in any order and on any number of threads."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from transforms.token_file import TokenizerError, read_tokenizer
from transforms.token_training import train_bpe
from transforms.tokens import Encoder

ROOT = Path(__file__).parents[2]


def corpus(documents: int = 200) -> list[str]:
    draw = random.Random(5)
    stems = ["lamp", "night", "harb", "Brück", "नदी", "灯", "fin", "str", "über", "l'eau"]
    ends = ["s", "ing", "our", "en", "", "е", "1200", "  ", "\n", "…"]
    return [" ".join(draw.choice(stems) + draw.choice(ends) for _ in range(60)) for _ in range(documents)]


def digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def test_training_in_any_order_gives_the_same_bytes() -> None:
    texts = corpus()
    expected = train_bpe(texts, 420, ["<|end|>"])
    assert train_bpe(iter(texts), 420, ["<|end|>"]) == expected
    assert train_bpe(texts[::-1], 420, ["<|end|>"]) == expected
    random.Random(1).shuffle(texts)
    assert train_bpe(texts, 420, ["<|end|>"]) == expected


def test_training_on_any_number_of_threads_gives_the_same_bytes() -> None:
    code = "from tests.transforms.test_token_training import *; print(digest(train_bpe(corpus(), 420, ['<|end|>'])))"
    found = set()
    for threads, seed in (("1", "0"), ("4", "77")):
        settings = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found.add(done.stdout.strip())
    assert found == {digest(train_bpe(corpus(), 420, ["<|end|>"]))}


def test_trained_tokenizer_has_special_tokens_first_then_bytes_then_merges() -> None:
    content = train_bpe(["the lamp, the lamp", "<|end|> is text here"], 300, ["<|end|>", "<|pad|>"])
    value = json.loads(content)
    file = read_tokenizer(content, ["<|end|>"])
    assert file.controls == {"<|end|>": 0, "<|pad|>": 1}
    assert 258 < file.vocabulary <= 300 and len(value["model"]["merges"]) == file.vocabulary - 258
    encoder = Encoder(file, None, "<|end|>")
    text = "lamp <|end|> \x00é灯"
    assert encoder.decode(encoder.encode(text)) == text + "<|end|>"
    assert encoder.encode("the lamp").size < 8


def test_training_on_nothing_gives_the_bytes() -> None:
    assert read_tokenizer(train_bpe([], 1000), []).vocabulary == 256


@pytest.mark.parametrize(
    ("size", "special", "message"),
    [(256, ["<|end|>"], "no room"), (10, [], "no room"), (300, ["a", "a"], "different"), (300, [""], "not empty")],
)
def test_training_without_room_or_with_repeated_special_tokens_is_refused(
    size: int, special: list[str], message: str
) -> None:
    with pytest.raises(TokenizerError, match=message):
        train_bpe(["x"], size, special)
