"""What is said while kernels are compiled."""

import subprocess
import sys

import pytest

from curate.running.compiling import COMPILING

PROGRAM = """
import numba
from curate.running.compiling import compiling_told

plain = numba.njit(lambda n: n + 1)
other = numba.njit(lambda n: n + 2)
with compiling_told():
    assert plain(1) + other(1) == 5
    assert plain(2) == 3
with compiling_told():
    assert plain(3) == 4
numba.njit(lambda n: n + 3)(1)
"""


@pytest.mark.parametrize("compiled", [True, False])
def test_compiling_is_told_once_where_there_is_some_and_only_then(compiled: bool) -> None:
    program = (
        PROGRAM if compiled else "from curate.running.compiling import compiling_told\nwith compiling_told(): pass"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert done.stderr.splitlines().count(COMPILING) == compiled
