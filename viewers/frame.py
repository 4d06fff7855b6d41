"""The frame of every page: its head with a policy that admits our own style and script, and how it is written."""

from __future__ import annotations

import hashlib
import os
from base64 import b64encode
from importlib.resources import files
from pathlib import Path
from typing import Final

from viewers.markup import Markup, element, own_script, stylesheet

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""Content security policy of a page without script: our own style and nothing else."""


def policy(source: str) -> str:
    """Return the content security policy of a page with the script `source`: that script, by its hash, and no other."""
    admitted = b64encode(hashlib.sha256(source.encode()).digest()).decode()
    return f"{POLICY}; script-src 'sha256-{admitted}'" if source else POLICY


def document(title: str, *body: Markup, source: str = "", refresh: int = 0) -> str:
    """Return a whole page that ends with the script `source`, if there is one.

    Where no script runs it is loaded again after `refresh` seconds (0: never).
    """
    again = element("noscript", element("meta", http_equiv="refresh", content=refresh)) if refresh else None
    end = own_script(source) if source else None
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(source)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        again,
        stylesheet((files("viewers") / "report.css").read_text("utf-8")),
    )
    return "<!DOCTYPE html>\n" + element("html", head, element("body", *body, end), lang="en").html + "\n"


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
