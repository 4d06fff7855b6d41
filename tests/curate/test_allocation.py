from __future__ import annotations

import pyarrow as pa
import pytest

from curate.running import allocation
from curate.running.allocation import memory_kept


def test_memory_kept_arrow_allocates_with_the_c_library_meanwhile_and_not_after() -> None:
    before = pa.default_memory_pool().backend_name
    with pytest.raises(KeyError), memory_kept():
        inside = pa.default_memory_pool().backend_name
        numbers = pa.array(range(1000))
        raise KeyError
    assert inside == ("system" if allocation._glibc() else before)
    assert pa.default_memory_pool().backend_name == before
    assert numbers.to_pylist() == list(range(1000))


def test_memory_kept_without_glibc_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "_glibc", lambda: None)
    before = pa.default_memory_pool().backend_name
    with memory_kept():
        assert pa.default_memory_pool().backend_name == before


@pytest.mark.skipif(allocation._glibc() is None, reason="needs glibc 2.33")
def test_memory_kept_gives_back_what_is_free_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "KEPT", 8 << 20)
    library = allocation._glibc()
    assert library is not None
    monkeypatch.setattr(library, "looked", 0)  # other tests may have grown this process
    with memory_kept():
        held = [bytearray(1 << 16) for _ in range(2000)]
        last = bytearray(1 << 16)  # what is behind the others keeps the heap from shrinking
        resident = _resident()
        del held
    assert _resident() < resident - (90 << 20)
    assert len(last) == 1 << 16


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
