"""Training a tokenizer: byte-level BPE over texts, the same bytes for the same multiset of texts.

Training counts words and merges pairs, so it depends neither on the order of the texts nor on threads; which of two
equally frequent pairs is merged first follows from their ids. Every text can be encoded and decodes to itself: the 256
bytes are in the vocabulary from the start. Cost: some MB/s per core; memory: the distinct words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from transforms.token_file import TokenizerError

BYTES: Final = 256

WORDS: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""What no merge crosses: the pattern of cl100k (OpenAI, 2023) with combining marks kept in their word and every digit
alone, as Qwen 3.5 has it. A pattern that the fast backend knows (`transforms.fast_tokens`); it refuses those it does
not."""


def train_bpe(texts: Iterable[str], vocab_size: int, special: Sequence[str] = ()) -> bytes:
    """Return the tokenizer.json of a byte-level BPE with at most `vocab_size` ids; `special` tokens have the first.

    Texts that hold a special token train on it as text. Fewer ids come out where the texts have no pair left that
    occurs twice.

    Raises:
        TokenizerError: `vocab_size` has no room for the bytes and special tokens, or a special token is repeated.
    """
    if len(set(special)) < len(special) or "" in special:
        raise TokenizerError(f"special tokens must be different and not empty, got {list(special)}")
    if vocab_size < BYTES + len(special):
        raise TokenizerError(
            f"vocab_size {vocab_size:,} has no room for {BYTES} bytes and {len(special)} special tokens"
        )
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        show_progress=False,
        special_tokens=[AddedToken(text, special=True, normalized=False) for text in special],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(texts, trainer)
    return str(tokenizer.to_str(pretty=True)).encode() + b"\n"
