"""The environment that reaches the bits of a training run, as a record to keep beside a checkpoint.

XLA's result depends on its version, the instruction set and the number of threads (docs: a step pinned to one core
gives other bits than on two), so equality of states is promised where these records are equal.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Final

import jax

LIBRARIES: Final = ("equinox", "jax", "jaxlib", "numpy", "optax")
INSTRUCTIONS: Final = ("sse4_2", "avx", "avx2", "fma", "avx512f", "avx512bw", "avx512_bf16", "amx_tile", "asimd", "sve")
"""Instruction sets for which XLA writes different code, by their names in /proc/cpuinfo."""

FORCED: Final = "--xla_force_host_platform_device_count"
"""Counted among the devices, and no flag that reaches the code."""

HARDWARE: Final = ("devices", "hosts")
"""What a strict run may change between two starts: its state is the same on any number of devices."""


def environment(devices: int = 1) -> dict[str, str]:
    """Return the fingerprint of a run on `devices`: versions, backend, threads, instruction set, XLA's flags."""
    return {
        **{library: version(library) for library in LIBRARIES},
        "backend": jax.default_backend(),
        "device": jax.devices()[0].device_kind,
        "devices": str(devices),
        "hosts": str(jax.process_count()),
        "threads": str(_threads()),
        "machine": platform.machine(),
        "instructions": " ".join(_instructions()),
        "xla_flags": " ".join(flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(FORCED)),
    }


def _threads() -> int:
    """Return the number of threads that XLA computes with on a CPU: NPROC if that is set, else the process's cores.

    XLA has at least one for each device, and makes other code for one thread than for several, so one core with one
    device (1) is told apart from one core with several (2).
    """
    given = os.environ.get("NPROC", "")
    cores = int(given) if given.isdecimal() else _cores()
    return cores if cores > 1 else min(2, jax.local_device_count())


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _instructions() -> list[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    words = next((set(line.split()) for line in lines if line.startswith(("flags", "Features"))), set())
    return [name for name in INSTRUCTIONS if name in words]
