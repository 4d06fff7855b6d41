"""Builds the API reference: a page for each package and for each module that the documentation imports from.

    python -m docs.api_reference FOLDER

Anything that pdoc warns of, a type that it cannot find for one, is an error.
"""

from __future__ import annotations

import re
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("curate", "transforms", "mixtures", "viewers")
FURTHER: Final = (
    "curate.run",
    "curate.doctor",
    "curate.upkeep.verify",
    "trainers.config",
    "trainers.train",
    "trainers.evidence.compare",
)
"""Modules that programs call and no code block of the documentation imports from."""
_IMPORT: Final = re.compile(r"^ *from ((?:curate|transforms|mixtures|trainers|viewers)(?:\.\w+)*) import ", re.M | re.A)


def documented() -> list[str]:
    """Return the modules that have a page, by name."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs" / "recipes").glob("*.py")]
    named = {name for page in pages for name in _IMPORT.findall(page.read_text("utf-8"))}
    return sorted({*PACKAGES, *FURTHER, *named})


def build(folder: Path) -> list[Path]:
    """Write the pages below `folder` and return them.

    Raises:
        UserWarning: pdoc could not make something of a name or a type.
    """
    import pdoc
    import pdoc.render

    names = documented()
    for name in names:
        module = import_module(name)
        for public in getattr(module, "__all__", ()):
            getattr(module, public)  # those of a package that imports lazily are there from now on
    pdoc.render.configure(docformat="google", show_source=False, search=False)
    below = [f"!{re.escape(name)}\\." for name in PACKAGES]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        pdoc.pdoc(*PACKAGES, *below, *(name for name in names if name not in PACKAGES), output_directory=folder)
    return sorted(folder.rglob("*.html"))


if __name__ == "__main__":
    for path in build(Path(sys.argv[1])):
        print(path)
