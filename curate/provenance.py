"""What a result was made with: the text of the recipe, the files that it read, the version of curate, the mixture.

All of it lies beside the result and none of it in its key or content: a comment added to a recipe changes no data. So
it is what the run told of itself that made the result first; a later one that makes the same leaves it as it is.

    <name>-<key>/provenance/recipe-<digest>.py     the recipe file, byte for byte
    <name>-<key>/provenance/inputs.jsonl           one line per input file: source, file, bytes, digest

Paths are those below the root of a source: no place of this machine is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from curate.digests import digest_bytes
from curate.inputs.files import FileUnit
from curate.readers.reader import Reader
from transforms.canonical import canonical_json

FOLDER: Final = "provenance"
INPUTS: Final = f"{FOLDER}/inputs.jsonl"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What the manifest says under `provenance`, and the files beside it by name."""

    told: dict[str, Any]
    files: Mapping[str, bytes]


def provenance(
    read: Iterable[tuple[Reader, Iterable[FileUnit]]], recipe: tuple[str, bytes] | None, mixture: Any
) -> Provenance:
    """Return what is recorded of a run.

    Args:
        read: each reader of the recipe with its files.
        recipe: name and content of the recipe's file, None for a recipe that was made in Python.
        mixture: the mixture as it was asked for, as JSON values; None where there is none.
    """
    lines: list[str] = []
    sources: dict[str, Any] = {}
    for source, files in sorted(_files(read).items()):
        told = [canonical_json(line) for line in files]
        lines += told
        size = sum(line["bytes"] for line in files)
        sources[source] = {"files": len(files), "bytes": size, "digest": digest_bytes("\n".join(told).encode())}
    content = {INPUTS: "".join(f"{line}\n" for line in lines).encode()}
    said: dict[str, Any] = {"curate": version("curate"), "inputs": sources, "recipe": None, "mixture": mixture}
    if recipe is not None:
        digest = digest_bytes(recipe[1])
        name = f"{FOLDER}/recipe-{digest[:16]}.py"
        said["recipe"] = {"name": recipe[0], "file": name, "digest": digest}
        content[name] = recipe[1]
    return Provenance(said, content)


def _files(read: Iterable[tuple[Reader, Iterable[FileUnit]]]) -> dict[str, list[dict[str, Any]]]:
    """Return source → its files in order, each once with its whole size, whatever parts it is read in."""
    sizes: dict[tuple[str, str, str], int] = {}
    for reader, units in read:
        parts = {(unit.path, unit.fingerprint, unit.part): unit.size for unit in units}
        mine: dict[tuple[str, str, str], int] = {}
        for (path, fingerprint, _), size in parts.items():
            name = reader.source, path, fingerprint
            mine[name] = mine.get(name, 0) + size
        sizes |= mine
    found: dict[str, list[dict[str, Any]]] = {}
    for (source, path, fingerprint), size in sorted(sizes.items()):
        line = {"source": source, "file": path, "bytes": size, "digest": fingerprint}
        found.setdefault(source, []).append(line)
    return found
