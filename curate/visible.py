"""Texts of anyone's as a terminal may show them: bounded, control and direction characters as escapes."""

from __future__ import annotations

from typing import Final

SHOWN: Final = 800
"""Code points of a value that are shown."""

CONTROLS: Final = {*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F} - {10}


def visible(text: str, limit: int = SHOWN) -> str:
    """Return the first `limit` code points of `text`, control and direction characters as escapes."""
    shown = "".join(f"\\u{ord(c):04x}" if ord(c) in CONTROLS else c for c in text[:limit])
    return shown + (f" […] {len(text) - limit:,} more characters" if len(text) > limit else "")
