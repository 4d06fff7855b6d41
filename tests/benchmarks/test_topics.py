"""The measures of the benchmark of topics, on groupings that can be reckoned by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.topics import agreement


@pytest.mark.parametrize(
    ("found", "purity", "nmi"),
    [
        ([0, 0, 1, 1], 1, 1),
        ([1, 1, 0, 0], 1, 1),
        ([0, 0, 0, 1], 3 / 4, 0.3437),  # (3/4 log 2 + … ) over the mean of .5623 and .6931
        ([0, 1, 2, 3], 1, 2 / 3),
    ],
)
def test_agreement_of_known_groupings(found: list[int], purity: float, nmi: float) -> None:
    said = agreement(np.array(found), np.array([0, 0, 1, 1]))
    assert said == (pytest.approx(purity), pytest.approx(nmi, abs=1e-3))
