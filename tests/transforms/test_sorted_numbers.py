from __future__ import annotations

import numpy as np

from transforms.sorted_numbers import span_of


def test_span_is_what_lies_from_start_up_to_stop() -> None:
    numbers = np.array([0, 3, 3, 7, 9], np.int64)
    for start in range(-1, 11):
        for stop in range(start, 11):
            first, last = span_of(numbers, start, stop)
            assert numbers[first:last].tolist() == [n for n in numbers.tolist() if start <= n < stop]
    assert span_of(numbers[:0], 0, 5) == (0, 0)
