"""Keys: what a stage or shard is called before it is made.

A key digests configuration, versions and the keys of inputs, never paths, hosts, times or worker counts. It is built
transform by transform, so where a chain is cut changes no key after it. Cost: one digest per unit and transform; what
is the same for all units is described and encoded once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from curate.accounting.accountant import Step
from curate.configuration import describe
from curate.digests import digest_bytes, digest_json
from curate.inputs.files import FileUnit
from curate.readers.reader import Reader
from curate.recipes.graph import HoldOut
from curate.recipes.models import MadeBy
from curate.recipes.stages import VERBS, DocumentStage, Stage, Wide, WideStage, steps_with, without_inputs
from transforms.canonical import canonical_json

Units = Mapping[str, Sequence[FileUnit]]
"""The fingerprinted units of every reader, by `reading_name`."""


def reading_name(reader: Reader) -> str:
    """Return a name for the files that `reader` reads, unique within a recipe."""
    return f"{reader.source}\0{reader.root}\0{reader.pattern}\0{reader.format}\0{reader.listing}"


def unit_keys(reader: Reader, units: Iterable[FileUnit]) -> list[str]:
    """Return the keys of units of reading: reader configuration, path below the root, fingerprint."""
    described = canonical_json(describe(reader))
    return [_unit_key(described, unit) for unit in units]


def _unit_key(reader: str, unit: FileUnit) -> str:
    fingerprint, path = canonical_json(unit.fingerprint), canonical_json(unit.path)
    part = "" if unit.part is None else f'"part":{canonical_json(unit.part.described())},'
    told = f'{{"fingerprint":{fingerprint},"operation":"read",{part}"path":{path},"reader":{reader}}}'
    key = digest_bytes(told.encode())
    if not unit.repeats:
        return key
    return digest_json({"operation": "same record", "input": key, "ids": sorted(i.hex() for i in unit.repeats)})


@dataclass(frozen=True, slots=True)
class Chain:
    """Transforms one after the other, described and encoded."""

    transforms: tuple[str, ...]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> Chain:
        """Return the chain of `steps`; files that their transforms name are hashed here."""
        return cls(tuple(canonical_json(describe(step.transform)) for step in steps))

    def key(self, key: str) -> str:
        """Return the key of what the chain makes of the dataset or shard `key`."""
        for transform in self.transforms:
            key = digest_bytes(f'{{"input":"{key}","operation":"apply","transform":{transform}}}'.encode())
        return key


@dataclass(slots=True)
class Keys:
    """The keys of the stages of one recipe over fingerprinted `units`; each is made once."""

    units: Units
    _stages: dict[Stage, str] = field(default_factory=dict)
    _chains: dict[Stage, Chain] = field(default_factory=dict)

    def stage(self, stage: Stage) -> str:
        """Return the key of `stage`."""
        if stage not in self._stages:
            self._stages[stage] = self._key(stage)
        return self._stages[stage]

    def _key(self, stage: Stage) -> str:
        if isinstance(stage, WideStage):
            return wide_key(stage.operation, [self.stage(parent) for parent in stage.inputs])
        if stage.upstream is not None:
            return self.chain(stage).key(self.stage(stage.upstream))
        if stage.reader is None:
            raise TypeError("a stage reads files or an upstream stage")
        mine = [replace(unit, repeats=frozenset()) for unit in self.units[reading_name(stage.reader)]]
        return self.chain(stage).key(digest_json({"operation": "read", "units": unit_keys(stage.reader, mine)}))

    def chain(self, stage: DocumentStage) -> Chain:
        """Return the transforms of `stage`."""
        if stage not in self._chains:
            made = {id(model): MadeBy(self.stage(fits)) for model, fits in stage.models}
            self._chains[stage] = Chain.of(steps_with(stage.steps, lambda model: made[id(model)]))
        return self._chains[stage]

    def shards(self, stage: DocumentStage, units: Sequence[FileUnit]) -> list[str]:
        """Return the keys of the shards that `stage`, which reads files, makes of `units`."""
        if stage.reader is None:
            raise TypeError(f"{stage.name} reads no files")
        return [self.chain(stage).key(key) for key in unit_keys(stage.reader, units)]


def wide_key(operation: Wide, inputs: Sequence[str]) -> str:
    """Return the key of `operation` on inputs with these keys; a part of a hold-out has that of the whole in it."""
    if isinstance(operation, HoldOut):
        return digest_json({"operation": "output", "input": shared_key(operation, inputs), "name": operation.part})
    return shared_key(operation, inputs)


def shared_key(operation: Wide, inputs: Sequence[str]) -> str:
    """Return the key of all outputs of `operation` together."""
    whole = replace(operation, part="") if isinstance(operation, HoldOut) else operation
    what = {**without_inputs(whole), "inputs": list(inputs)}
    return digest_json({"operation": VERBS[type(operation)], "what": what})
