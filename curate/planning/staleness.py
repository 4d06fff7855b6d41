"""Why a stage must run: what differs from the nearest dataset of the same name that the store holds.

Nearest is the one from which the fewest things differ. Cost: the manifests of that name, and for a stage that reads
files the list of shards of the nearest few.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from curate.datasets import Dataset, dataset_folder
from curate.keys import Keys, reading_name
from curate.planning.differences import differences, input_changes
from curate.receipts import committed_folders, read_manifest
from curate.recipes.stages import DocumentStage, Stage, describe_stage
from curate.store import Store, StoreError

COMPARED: Final = 8
"""Earlier datasets whose files are compared with those of the stage."""

FIRST: Final = "nothing of this name is in the store"
LOST: Final = "shards of it were removed from the store"
OTHERWISE: Final = "its key is made otherwise than that of the nearest earlier one: another version of curate made that"


def reasons(
    stage: Stage, store: Store, keys: Keys, unhashed: Sequence[str], known: Mapping[Stage, str | None]
) -> tuple[str, ...]:
    """Return why `stage` is not there as it is asked for.

    Args:
        stage: one that a run would make.
        store: where earlier ones lie.
        keys: of the recipe's stages, as far as files are hashed.
        unhashed: paths of its files that are not.
        known: the keys of the stages before it, None while one is not known.
    """
    earlier = list(_earlier(store, stage.name))
    if not earlier:
        return (FIRST,)
    described = json.loads(json.dumps(describe_stage(stage)))
    told = []
    for folder, manifest in earlier:
        if manifest["key"] == known.get(stage):
            return (LOST,)
        said = [*differences(manifest["operation"], described), *_upstream(stage, manifest, known)]
        told.append((len(said), folder, manifest, said))
    told.sort(key=lambda entry: entry[:2])
    if isinstance(stage, DocumentStage) and stage.reader is not None:
        units: dict[str, str | None] = {unit.path: unit.fingerprint for unit in keys.units[reading_name(stage.reader)]}
        units |= dict.fromkeys(unhashed)
        near = [(said, _unit_changes(store, folder, manifest, units)) for _, folder, manifest, said in told[:COMPARED]]
        said, (_, files) = min(near, key=lambda entry: (len(entry[0]), entry[1][0]))
        return (*said, *files) or (() if unhashed else (OTHERWISE,))
    return tuple(told[0][3]) or (OTHERWISE,)


def _earlier(store: Store, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    prefix = dataset_folder(name, "")
    for folder in committed_folders(store):
        if folder.startswith(prefix):
            try:
                manifest = read_manifest(store, folder)
            except StoreError:
                continue  # `verify` says what is wrong with it
            if manifest.get("name") == name and "operation" in manifest:
                yield folder, manifest


def _upstream(stage: Stage, manifest: Mapping[str, Any], known: Mapping[Stage, str | None]) -> Iterator[str]:
    """Yield what differs between the inputs; of one that is not known yet nothing is said."""
    before, after = [*manifest["inputs"], *manifest.get("models", ())], stage.inputs
    names, keys = [entry["name"] for entry in before], [entry["key"] for entry in before]
    wanted = [parent.name for parent in after]
    for place, parent in enumerate(after):
        nth = wanted[:place].count(parent.name)  # several may have one name
        same = [key for name, key in zip(names, keys, strict=True) if name == parent.name]
        if nth >= len(same):
            yield f"upstream `{parent.name}` added"
        elif known[parent] is not None and same[nth] != known[parent]:
            yield f"upstream `{parent.name}` changed"
    yield from (f"upstream `{name}` removed" for name in Counter(names) - Counter(wanted))
    if names != wanted and sorted(names) == sorted(wanted):
        yield "the order of its inputs changed"


def _unit_changes(
    store: Store, folder: str, manifest: dict[str, Any], units: Mapping[str, str | None]
) -> tuple[int, list[str]]:
    shards = Dataset(store, folder, manifest).each_shard(["unit"])
    before = {unit["path"]: unit["fingerprint"] for unit in (json.loads(shard["unit"]) for shard in shards)}
    differ = sum(path not in units or (units[path] not in (None, print_)) for path, print_ in before.items())
    return differ + len(units.keys() - before.keys()), input_changes(before, units)
