from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from transforms.rare_characters import rows_with

POINTS = (0x41, 0x7F, 0x80, 0x3B1, 0x7FF, 0x800, 0x939, 0x4E00, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF)


def test_rows_with_a_marked_character_are_found_wherever_it_stands() -> None:
    chance = random.Random(1)
    marked = {0x800, 0xFFFF, 0x1F600}
    table = np.zeros(0x110000, np.bool_)
    table[list(marked)] = True
    for _ in range(400):
        pool = POINTS[: chance.randint(1, len(POINTS))]
        texts = [
            "".join(chr(chance.choice(pool)) for _ in range(chance.randint(0, 40))) for _ in range(chance.randint(1, 5))
        ]
        found = rows_with(pa.array(texts, pa.large_string()), table)
        assert found.tolist() == [any(ord(one) in marked for one in text) for text in texts], texts
