"""All looks, in order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from curate.doctor.finding import Finding
from curate.doctor.machine import (
    look_at_kernels,
    look_at_language_model,
    look_at_memory,
    look_at_processors,
    look_at_shared_memory,
    look_at_system,
    look_at_temporary_files,
)
from curate.doctor.packages import look_at_extras, look_at_lock, look_at_packages, look_at_python
from curate.doctor.services import look_at_ray, look_at_store
from curate.store import Store

_LOOKS: Final[Mapping[str, Callable[[], Iterable[Finding]]]] = {
    "system": look_at_system,
    "python": look_at_python,
    "packages": look_at_packages,
    "extras": look_at_extras,
    "cores": look_at_processors,
    "memory": look_at_memory,
    "shared-memory": look_at_shared_memory,
    "temporary-files": look_at_temporary_files,
    "kernels": look_at_kernels,
    "language-model": look_at_language_model,
    "ray": look_at_ray,
}
NAMES: Final = tuple(_LOOKS)
"""What is looked at unless it is skipped."""


def examine(store: Store | None = None, lock: Path | None = None, skip: Collection[str] = ()) -> Iterator[Finding]:
    """Yield what is found on this machine, at `store` and beside the lock file, as soon as it is found.

    A look that fails itself is a problem of that name, and the others go on. With Ray about 8 s, without 2 s.

    Raises:
        ConfigurationError: the lock file cannot be read.
    """
    for name, look in _LOOKS.items():
        if name not in skip:
            yield from _guarded(name, look)
    if lock is not None:
        yield from look_at_lock(lock)
    if store is not None:
        yield from look_at_store(store)


def _guarded(name: str, look: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from look()
    except Exception as error:
        yield Finding(name, "problem", f"could not be looked at: {type(error).__name__}: {error}", "reinstall curate")
