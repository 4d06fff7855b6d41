"""Python and the installed packages, beside what the package's metadata and a lock file ask for."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curate.configuration import ConfigurationError
from curate.doctor.finding import Finding

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE: Final = "curate"
OVERWRITES: Final = ("fasttext", "fasttext-wheel", "fasttext-predict", "fasttext-numpy2", "fasttext-numpy2-wheel")
"""Distributions that write into the folder `fasttext/` of fasttext-community, and break it."""
SHOWN: Final = 6
_PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*([^\\]+))?", re.MULTILINE | re.ASCII)


def look_at_python() -> Iterator[Finding]:
    """Yield whether this Python is one that is supported."""
    from packaging.specifiers import SpecifierSet

    asked, here = str(metadata(PACKAGE)["Requires-Python"]), platform.python_version()
    if SpecifierSet(asked).contains(here, prereleases=True):
        yield Finding("python", "ok", f"{here} in {sys.prefix}")
    else:
        yield Finding(
            "python", "problem", f"{here}, and {asked} is asked for", "make an environment of Python 3.11-3.13"
        )


def look_at_packages() -> Iterator[Finding]:
    """Yield whether what every run needs is installed in a fitting version, whole and once."""
    needed = [need for need, extra in _needs() if not extra]
    wrong = [said for need in needed if (said := _misfit(need))]
    if wrong:
        remedy = f"pip install --upgrade {PACKAGE}, or the lock file: pip install --require-hashes -r requirements.lock"
        yield Finding("packages", "problem", _some(wrong), remedy)
    else:
        yield Finding("packages", "ok", f"all {len(needed)} that {PACKAGE} {version(PACKAGE)} needs")
    if there := [name for name in OVERWRITES if _installed(name) is not None]:
        names = " ".join(there)
        remedy = f"pip uninstall {names}; pip install --force-reinstall --no-deps fasttext-community"
        yield Finding("fasttext", "problem", f"{names} writes over fasttext-community", remedy)


def look_at_extras() -> Iterator[Finding]:
    """Yield which extras are installed; one whose packages are there in versions that do not fit is a warning."""
    extras: dict[str, list[Requirement]] = {}
    for need, extra in _needs():
        if extra and need.name != PACKAGE:
            extras.setdefault(extra, []).append(need)
    whole, absent = [], []
    for extra, needs in extras.items():
        wrong = [said for need in needs if (said := _misfit(need))]
        if not wrong:
            whole.append(extra)
        elif any("not installed" in said for said in wrong) or extra == "test":  # parts may belong to something else
            absent.append(extra)
        else:
            yield Finding(
                f"extra {extra}", "warning", _some(wrong), f"pip install '{PACKAGE}[{extra}]', if you need it"
            )
    said = f"installed: {', '.join(whole) or 'none'}; not: {', '.join(absent) or 'none'}"
    yield Finding("extras", "ok", said)


def look_at_lock(lock: Path) -> Iterator[Finding]:
    """Yield in what the installed packages differ from a lock file; those that are not installed are not counted.

    Raises:
        ConfigurationError: there is no such file, or it pins nothing.
    """
    pins = _pins(lock)
    found = {name: _installed(name) for name in pins}
    other = [f"{name} {here} (lock: {pins[name]})" for name, here in found.items() if here and here != pins[name]]
    if other:
        remedy = f"pip install --require-hashes -r {lock}: equality to the bit is promised under one lock file"
        yield Finding("lock", "warning", _some(other), remedy)
    else:
        yield Finding("lock", "ok", f"{sum(here is not None for here in found.values())} packages as pinned in {lock}")


def _pins(lock: Path) -> Mapping[str, str]:
    from packaging.markers import Marker

    if not lock.is_file():
        raise ConfigurationError(f"--lock {lock}: no such file")
    found = _PIN.findall(lock.read_text("utf-8"))
    if not found:
        raise ConfigurationError(f"--lock {lock}: pins no package (NAME==VERSION)")
    return {name: pin for name, pin, marker in found if not marker or Marker(marker.strip()).evaluate()}


def _needs() -> Iterable[tuple[Requirement, str]]:
    """Yield the requirements of our own metadata that hold here, each with its extra ("" for those of every run)."""
    from packaging.requirements import Requirement

    for text in requires(PACKAGE) or ():
        need = Requirement(text)
        extra = re.search(r"extra == ['\"]([^'\"]+)", text)
        if need.marker is None or need.marker.evaluate({"extra": extra[1] if extra else ""}):
            yield need, extra[1] if extra else ""


def _misfit(need: Requirement) -> str:
    """Return in what the installed version does not fit, or ""."""
    here = _installed(need.name)
    if here is None:
        return f"{need.name} is not installed"
    if not need.specifier.contains(here, prereleases=True):
        return f"{need.name} {here} (asked: {need.specifier})"
    return next((f"{need}: {said}" for part in _parts(need) if (said := _misfit(part))), "")


def _parts(need: Requirement) -> Iterator[Requirement]:
    """Yield what the extras of a requirement ask for, as those of ray[default]."""
    from packaging.requirements import Requirement

    for text in (requires(need.name) or ()) if need.extras else ():
        part = Requirement(text)
        if part.marker is not None and any(part.marker.evaluate({"extra": extra}) for extra in need.extras):
            yield Requirement(f"{part.name}{part.specifier}")


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _some(said: list[str]) -> str:
    return ", ".join(said[:SHOWN]) + (f" and {len(said) - SHOWN} more" if len(said) > SHOWN else "")
