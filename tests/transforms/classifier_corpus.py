"""A made-up corpus of two classes, sentences and menus, and a small model of it."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pyarrow as pa

from transforms.classifier_training import Trained, train_and_judge
from transforms.duplicates import text_digests
from transforms.learners import HashedLinear, Learner
from transforms.text_windows import windows_of
from transforms.training_set import CANDIDATES, NEGATIVE, POSITIVE, TARGET, Selection, text_keys

WORDS = "the river ran past an old mill where people came to sit and talk of weather and of each other"
MENU = "Home Login Cart Help Menu Search Share Next Previous Contact About Terms"
SMALL = HashedLinear(bits=10, common=16)
WIDTH = 200


def prose(seed: int) -> str:
    draw = random.Random(seed)
    sentences = [" ".join(draw.choices(WORDS.split(), k=draw.randint(6, 14))) for _ in range(5)]
    return " ".join(f"{s[0].upper()}{s[1:]}." for s in sentences)


def menu(seed: int) -> str:
    draw = random.Random(seed)
    return "\n".join(" ".join(draw.choices(MENU.split(), k=draw.randint(1, 3))) for _ in range(20))


def candidates(rows: list[tuple[int, str, str, str | None]], width: int = WIDTH) -> pa.Table:
    """Return rows of `CANDIDATES` of (class, text, source, site)."""
    text = pa.array([row[1] for row in rows], pa.large_string())
    digests, windows = text_digests(text), windows_of(text, width)
    columns = [
        pa.array([row[0] for row in rows], pa.int8()),
        pa.array(text_keys(digests)),
        digests,
        pa.array([row[2] for row in rows], pa.large_string()),
        pa.array([row[3] for row in rows], pa.large_string()),
        pa.array([f"t{n % 3}" for n in range(len(rows))], pa.large_string()),
        pa.nulls(len(rows), pa.large_string()),
        pa.array([len(row[1]) for row in rows], pa.int64()),
        pa.LargeListArray.from_arrays(pa.array(windows.offsets), windows.texts),
    ]
    return pa.Table.from_arrays(columns, schema=CANDIDATES)


def corpus(count: int = 60) -> list[tuple[int, str, str, str | None]]:
    """Return documents of three sources, three to a site, and a few of the target."""
    rows: list[tuple[int, str, str, str | None]] = []
    for n in range(count):
        rows.append((POSITIVE, prose(n), "news" if n % 3 else "books", f"p{n // 3}.example"))
        rows.append((NEGATIVE, menu(n), "menus", f"n{n // 3}.example"))
    return [*rows, *((TARGET, prose(n) if n % 2 else menu(n), "web", None) for n in range(1000, 1010))]


def trained(learner: Learner = SMALL, leave_out: str | None = "books") -> Trained:
    selection = Selection(1000, Fraction(1, 4), leave_out, None)
    return train_and_judge(candidates(corpus()), learner, WIDTH, selection)


def shuffled(table: pa.Table, seed: int) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))
