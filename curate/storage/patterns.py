"""Which names a pattern means, as `pathlib.Path.glob` understands it, where there is no file system to ask."""

from __future__ import annotations

import re


def matcher(pattern: str) -> re.Pattern[str]:
    """Return the expression that matches whole names below a root: "**" is any number of folders, the last any file."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    folders = "".join("(?:[^/]+/)*" if part == "**" else f"{_component(part)}/" for part in parts[:-1])
    last = "(?:[^/]+/)*[^/]+" if parts and parts[-1] == "**" else _component(parts[-1] if parts else "")
    return re.compile(f"(?s:{folders}{last})\\Z")


def _component(part: str) -> str:
    made, at = "", 0
    while at < len(part):
        char, at = part[at], at + 1
        if char == "*":
            made += "[^/]*"
        elif char == "?":
            made += "[^/]"
        elif char == "[" and (stop := part.find("]", at + 1 + part.startswith("!", at))) > 0:
            inside = part[at:stop].replace("\\", "\\\\").replace("^", "\\^").replace("[", "\\[")
            made += f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
            at = stop + 1
        else:
            made += re.escape(char)
    return made
