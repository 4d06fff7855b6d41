import json

import numpy as np

from transforms.token_bytes import token_bytes
from transforms.token_file import read_tokenizer
from transforms.token_training import train_bpe

TEXT = "Größe 大きさ, naïve — tokens of several bytes. " * 4


def test_bytes_of_a_byte_level_vocabulary_add_up_to_those_of_the_text():
    import tokenizers

    content = train_bpe([TEXT], 300, ("<|end|>",))
    file = read_tokenizer(content, ["<|end|>"])
    sizes = token_bytes(file)
    ids = tokenizers.Tokenizer.from_str(file.content).encode(TEXT).ids
    assert sizes[ids].sum() == len(TEXT.encode())
    assert sizes[file.controls["<|end|>"]] == 0
    assert len(sizes) == file.vocabulary


def test_byte_fallback_and_spaces_of_sentencepiece_are_counted_as_what_they_stand_for():
    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁Größe", -1], ["<0xE4>", -2], ["大", -3]]}
    added = [{"id": 0, "content": "<unk>", "special": True}]
    content = json.dumps({"added_tokens": added, "model": model, "decoder": {"type": "ByteFallback"}}).encode()
    assert np.array_equal(token_bytes(read_tokenizer(content, [])), [0, 8, 1, 3])
