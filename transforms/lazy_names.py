"""Names of a package that are imported when they are first asked for.

`import curate` then costs what a program uses of it: a worker that hashes files loads no classifier. The imports are
written as for a type checker, under `if TYPE_CHECKING:`, and read from there, so that there is one list of them.
A name must not be that of a module beside it: whoever imported the module first would decide what the name means.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def lazy_names(package: str, file: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` (PEP 562) of `package`, whose names stand in `file` under `if TYPE_CHECKING:`.

    `__getattr__` raises AttributeError for a name that is not among them.
    """
    homes = _homes(Path(file).read_text(encoding="utf-8"))

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__


def _homes(source: str) -> dict[str, str]:
    """Return the module of each name that `source` imports under `if TYPE_CHECKING:`."""
    blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If) and _is_type_checking(node.test))
    imports = (line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom))
    return {name.name: str(line.module) for line in imports for name in line.names}


def _is_type_checking(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
