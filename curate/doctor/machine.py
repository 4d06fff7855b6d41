"""The machine: system, processors, memory, shared memory, room for files, the folders of kernels and models."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from curate.doctor.finding import Finding
from curate.isolation.machine import available_memory

GIB: Final = 1 << 30
MEMORY_PER_CPU: Final = GIB
"""A worker with its isolated child: about .6 GiB with the kernels loaded, more while a page of some MB is extracted."""
SHARED_MEMORY: Final = 256 << 20
"""The object store of the Ray that a run starts."""
TEMPORARY: Final = 2 * GIB
SYSTEMS: Final = {"Linux": ("x86_64", "aarch64"), "Darwin": ("x86_64", "arm64")}


def look_at_system() -> Iterator[Finding]:
    """Yield whether this is a system that is supported."""
    system, machine = platform.system(), platform.machine()
    if machine in SYSTEMS.get(system, ()):
        yield Finding("system", "ok", f"{system} {machine}")
    else:
        remedy = "Linux on x86-64 or aarch64, or macOS; on Windows use WSL 2"
        yield Finding("system", "problem", f"{system} {machine} is not supported", remedy)


def look_at_processors() -> Iterator[Finding]:
    """Yield how many CPUs this process may use."""
    there = os.cpu_count() or 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else there
    yield Finding("cores", "ok", f"{usable} usable of {there}; --workers N takes fewer")


def look_at_memory() -> Iterator[Finding]:
    """Yield whether there is memory for a worker on each CPU."""
    free, cores = available_memory(), os.cpu_count() or 1
    said = f"{free / GIB:.1f} GiB can be had, for {cores} CPUs"
    if free < GIB:
        yield Finding("memory", "problem", said, "give the machine or the container at least 2 GiB")
    elif free < cores * MEMORY_PER_CPU:
        yield Finding("memory", "warning", said, f"curate run --workers {max(1, free // MEMORY_PER_CPU)}")
    else:
        yield Finding("memory", "ok", said)


def look_at_shared_memory(folder: Path = Path("/dev/shm")) -> Iterator[Finding]:
    """Yield whether Ray finds shared memory, which containers are often given too little of."""
    if not sys.platform.startswith("linux"):
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    said = f"{free / GIB:.1f} GiB free in {folder}"
    if free < SHARED_MEMORY:
        remedy = "docker run --shm-size=1g; until then Ray puts its objects on disk, or --runner local"
        yield Finding("shared memory", "warning", said, remedy)
    else:
        yield Finding("shared memory", "ok", said)


def look_at_temporary_files() -> Iterator[Finding]:
    """Yield whether temporary files, Ray's session among them, have room."""
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    said = f"{free / GIB:.1f} GiB free in {folder}"
    if free < TEMPORARY:
        yield Finding("temporary files", "warning", said, f"free {TEMPORARY / GIB:.0f} GiB, or set TMPDIR")
    else:
        yield Finding("temporary files", "ok", said)


def look_at_kernels() -> Iterator[Finding]:
    """Yield whether compiled kernels can be kept: each process compiles for half a minute else."""
    from transforms.kernels import own_folder

    try:
        folder = own_folder()
    except PermissionError as error:
        yield Finding("kernels", "problem", "compiled kernels cannot be kept", str(error))
        return
    if not folder.is_relative_to(Path.home()):
        remedy = f"make {Path.home() / '.cache'} writable: they are compiled again after each clean-up"
        yield Finding("kernels", "warning", f"kept in {folder}", remedy)
    else:
        yield Finding("kernels", "ok", f"compiled once, kept in {folder}")


def look_at_language_model() -> Iterator[Finding]:
    """Yield whether the model that `Language` needs is there, and is the pinned one."""
    from transforms.language_model import DEFAULT_MODEL_SHA256, default_model

    model = default_model()
    if not model.is_file():
        yield Finding("language model", "warning", f"{model} is not there", "curate fetch lid, if you use Language")
    elif hashlib.sha256(model.read_bytes()).hexdigest() != DEFAULT_MODEL_SHA256:
        yield Finding("language model", "problem", f"{model} is not lid.176.ftz", f"remove {model}; curate fetch lid")
    else:
        yield Finding("language model", "ok", str(model))
