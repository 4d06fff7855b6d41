"""Which ids stand in a stream of tokens: one pass, a byte per id of the vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel


@kernel
def mark_used(tokens: npt.NDArray[Any], there: npt.NDArray[np.bool_]) -> None:
    """Set `there` at each id in `tokens`; all are below its length."""
    for place in range(len(tokens)):
        there[tokens[place]] = True
