"""Write down anew what the golden recipes give: `python -m tests.golden.make`, after a version was raised.

Look at the difference before you commit it: each digest that changed is one that somebody may have quoted.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from curate.digests import digest_file, digest_json
from curate.run import Result, run
from tests.golden.recipe import FOLDER, small, whole

LOCKED = ("pyarrow", "zstandard")
"""Libraries whose version reaches the bytes of files, but not their content."""


def tree(store: Path) -> dict[str, str]:
    """Return name → digest of every published file of a store."""
    names = {path.relative_to(store).as_posix(): path for path in sorted(store.rglob("*")) if path.is_file()}
    return {name: digest_file(path) for name, path in names.items() if not name.startswith(("runs/", "spool/"))}


def described(result: Result, store: Path) -> dict[str, Any]:
    """Return what is written down of a result."""
    stages = {
        dataset.name: {
            "key": dataset.key,
            "rows": dataset.rows,
            "content": dataset.content,
            "ledger": dataset.manifest["ledger"],
            "texts": dataset.manifest["texts"],
        }
        for dataset in result.stages
    }
    return {"digest": result.digest, "stages": stages, "files": digest_json(tree(store))}


def make() -> None:
    """Run both recipes and write `digests.json` and `store/`."""
    with tempfile.TemporaryDirectory() as work:
        found: dict[str, Any] = {"versions": {name: version(name) for name in LOCKED}}
        for name, outputs in (("whole", whole()), ("small", small())):
            store = Path(work) / name
            found[name] = described(run(outputs, store, runner="local"), store)
        kept = FOLDER / "store"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(Path(work) / "small", kept, ignore=shutil.ignore_patterns("runs", "spool"))
    (FOLDER / "digests.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
