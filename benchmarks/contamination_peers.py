"""Other ways of decontaminating, called on the same texts: a plain set of 13-grams in Python, and datatrove's filter.

Both index questions and answers of all items (datatrove with `find_query_ngrams`, n-grams over their border included;
its own n is 12, here 13 as in the papers that use it; SHA-1, so that xxhash need not be there: 97 % of its time is
splitting). A text is flagged where one n-gram of it is in the index.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import numpy as np

from transforms.benchmark_items import Item

WORDS: Final = 13

Peer = Callable[[Sequence[str]], list[bool]]


def plain_set(items: Sequence[Item]) -> Peer:
    """Return the plain way: lower-case words of letters and digits, every n-gram of them in a Python set."""

    def grams(text: str) -> set[str]:
        words = re.findall(r"\w+", text.lower())
        return {" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}

    index: set[str] = set()
    for item in items:
        index |= grams(item.question) | grams(item.answer) | grams(f"{item.question} {item.answer}")
    return lambda texts: [not index.isdisjoint(grams(text)) for text in texts]


def datatrove(items: Sequence[Item]) -> Peer:
    """Return datatrove's NGramsDecontFilter with an index made by its NGramsDecontIndexer (without lighteval)."""
    from datatrove.data import Document
    from datatrove.pipeline.decont.n_grams import NGramsDecontConfig, NGramsDecontFilter, NGramsDecontIndexer
    from datatrove.utils.hashing import HashConfig, create_hash_func
    from datatrove.utils.word_tokenizers import load_word_tokenizer

    config = NGramsDecontConfig(n_grams=WORDS, find_query_ngrams=True, hash_config=HashConfig(hash_fc="sha1"))
    hash_func = create_hash_func(config.hash_config)
    maker = SimpleNamespace(config=config, tokenizer=load_word_tokenizer("eng"), hash_func=hash_func)
    hashes: set[int] = set()
    for item in items:
        hashes.update(NGramsDecontIndexer.compute_hashes(maker, item.answer, item.question))
    with tempfile.TemporaryDirectory() as folder:
        np.array(sorted(hashes), config.hash_config.np_descr).tofile(Path(folder) / "all.index.hashes")
        found = NGramsDecontFilter(folder, config, language="eng")
        found.load_index_hashes()
    return lambda texts: [found.filter(Document(text, str(n))) is not True for n, text in enumerate(texts)]


PEERS: Final[dict[str, Callable[[Sequence[Item]], Peer]]] = {"plain 13-gram set": plain_set, "datatrove": datatrove}
