"""Running stages: what is there is reused, what is missing is made, and a manifest commits what is whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from curate.caches.tokenization import Tokenization
from curate.cells import Cells, TrainedTokenizer
from curate.datasets import Dataset, MadeDataset, commit_dataset, has_dataset, open_dataset
from curate.deduplication import Deduplication
from curate.digests import digest_json
from curate.documents import DocumentJob, ShardUnit
from curate.graph import Deduplicate, HoldOut
from curate.inputs import FileUnit, FingerprintJob, InputFile, StatIndex, list_files, units_of
from curate.jobs import Item, Job, TaskError
from curate.journal import Journal
from curate.products import Caches, MadeOf, TokenizerFile, commit_caches, open_product
from curate.progress import Progress
from curate.readers.chunks import CHUNK_ROWS, InputError
from curate.readers.parquet import check_columns
from curate.readers.reader import Reader
from curate.receipts import Receipt, read_receipt, shard_folder
from curate.repeats import RepeatsJob, id_ranges, repeats_by_shard
from curate.runners import Attempt, Runner
from curate.stages import (
    DocumentStage,
    Stage,
    Stages,
    WideStage,
    chain_key,
    describe_stage,
    described_steps,
    readers_of,
    reading_name,
    shared_key,
    stage_key,
    unit_key,
)
from curate.statistics import merge_all
from curate.store import Store, StoreError
from curate.training import train
from transforms.tokens import Tokenizer

Units = Mapping[str, Sequence[FileUnit]]


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs jobs on a runner, reuses finished shards, and keeps the journal."""

    store: Store
    runner: Runner
    journal: Journal
    chunk_rows: int = CHUNK_ROWS

    def receipts(self, job: Job, items: Sequence[Item]) -> list[Receipt]:
        """Return the receipts of all `items`, in order; those that are missing are made.

        Raises:
            TaskError: an item failed.
        """
        missing = [item for item in items if read_receipt(self.store, item.key) is None]
        self.attempts(job, missing, len(items))
        return [self._receipt(item) for item in items]

    def _receipt(self, item: Item) -> Receipt:
        receipt = read_receipt(self.store, item.key)
        if receipt is None:
            raise StoreError(f"{item.label}: the task finished without a receipt in {self.store.url('')}")
        return receipt

    def attempts(self, job: Job, items: Sequence[Item], total: int) -> list[Attempt]:
        """Run `items`, `total` of which are asked for, with progress and journal."""
        if not items:
            return []
        progress = Progress(job.name, total, sum(item.bytes for item in items), total - len(items))
        done = []
        try:
            for attempt in self.runner.run(job, items):
                self.journal.write(
                    "task", job=job.name, key=attempt.item.key, label=attempt.item.label,
                    seconds=round(attempt.seconds, 3), host=attempt.host, pid=attempt.pid, peak_mb=attempt.peak_mb,
                )  # fmt: skip
                progress.advance(attempt.documents, attempt.item.bytes)
                done.append(attempt)
        except TaskError as error:
            self.journal.write("failure", job=job.name, error=str(error))
            raise
        finally:
            progress.finish()
        return done


def fingerprint_inputs(stages: Stages, engine: Engine) -> Units:
    """Return the fingerprinted units of every reader; files that the stat index does not know are hashed.

    Raises:
        ConfigurationError: a root is missing, nothing matches, or a Parquet file lacks a declared column.
    """
    index = StatIndex(engine.store)
    listed: dict[str, tuple[Reader, list[InputFile]]] = {}
    for reader in readers_of(stages):
        listed[reading_name(reader)] = (reader, _listed(reader))
    unknown = [file for _, files in listed.values() for file in units_of(files, index)[1]]
    items = [Item("", f"{file.path}", file, file.size) for file in dict.fromkeys(unknown)]
    attempts = engine.attempts(FingerprintJob(engine.store), items, len(items))
    index.put({attempt.item.unit: attempt.result for attempt in attempts})
    return {name: units_of(files, index)[0] for name, (_, files) in listed.items()}


def _listed(reader: Reader) -> list[InputFile]:
    files = list_files(reader)
    if reader.format == "parquet":
        for file in files:
            check_columns(file.root / file.path, reader)
    return files


Made = Dataset | TokenizerFile | Caches
"""What a stage made."""


def run_stages(stages: Stages, units: Units, engine: Engine, started: Callable[[Stage, bool], None]) -> dict[str, Made]:
    """Make every stage real and return what each made by its key.

    `started` is told of each stage, and whether it was there already.
    """
    made: dict[str, Made] = {}
    for stage in stages.ordered:
        key = stage_key(stage, units)
        there = has_dataset(engine.store, stage.name, key) and is_whole(open_made(engine.store, stage, key))
        started(stage, there)
        inputs = tuple(made[stage_key(parent, units)] for parent in stage.inputs)
        if there:
            made[key] = open_made(engine.store, stage, key)
        elif isinstance(stage, WideStage):
            made[key] = _run_wide(stage, key, inputs, engine)
        else:
            made[key] = _run_documents(stage, key, datasets_of(inputs), units, engine)
        engine.journal.write("stage", name=stage.name, key=key, reused=there, content=made[key].content)
    return made


def is_whole(made: Made) -> bool:
    """Return whether every shard has its receipt still: who removes a damaged shard gets it back by running again."""
    if not isinstance(made, Dataset):
        return True
    return all(made.store.exists(f"{shard_folder(shard['key'])}/receipt.json") for shard in made.shards())


def open_made(store: Store, stage: Stage, key: str) -> Made:
    """Open what `stage` made under `key`."""
    if isinstance(stage, WideStage) and not isinstance(stage.operation, (Deduplicate, HoldOut)):
        return open_product(store, stage.name, key)
    return open_dataset(store, stage.name, key)


def datasets_of(inputs: Sequence[Made]) -> tuple[Dataset, ...]:
    """Return the datasets among `inputs`."""
    return tuple(made for made in inputs if isinstance(made, Dataset))


def _run_wide(stage: WideStage, key: str, inputs: Sequence[Made], engine: Engine) -> Made:
    operation, datasets = stage.operation, datasets_of(inputs)
    described = describe_stage(stage)
    if isinstance(operation, (Deduplicate, HoldOut)):
        if isinstance(operation, Deduplicate):
            receipts, inner = Deduplication(stage, operation, key, datasets, engine).run()
        else:
            from curate.holdout import HoldingOut

            shared = shared_key(operation, [made.key for made in inputs])
            receipts, inner = HoldingOut(stage, operation, shared, datasets, engine).run()
        return commit_dataset(
            engine.store, MadeDataset(stage.name, key, described, datasets, stage.schema, receipts, tuple(inner))
        )
    if isinstance(operation, TrainedTokenizer):
        return train(stage.name, operation, key, described, datasets[0], engine)
    tokenizer = operation.tokenizer or _trained(operation, inputs)
    caches, inner = Tokenization(datasets[0], tokenizer, operation.by, key, engine).run()
    return commit_caches(engine.store, MadeOf(stage.name, key, described, inputs, [*inner, *caches]), caches)


def _trained(cells: Cells, inputs: Sequence[Made]) -> Tokenizer:
    (wanted,) = (parent for parent in cells.inputs if isinstance(parent, TrainedTokenizer))
    (file,) = (made for made in inputs if isinstance(made, TokenizerFile))
    return file.tokenizer(wanted.bos, wanted.eos)


def _run_documents(
    stage: DocumentStage, key: str, inputs: tuple[Dataset, ...], units: Units, engine: Engine
) -> Dataset:
    job = DocumentJob(
        engine.store, stage.name, stage.reader, stage.steps, stage.schema, stage.forbids, engine.chunk_rows
    )
    transforms = described_steps(stage.steps)
    inner: list[Receipt] = []
    if stage.reader is None:
        items = [
            Item(chain_key(shard["key"], transforms), shard["unit"], ShardUnit(shard["key"]), shard["bytes"])
            for shard in inputs[0].shards()
            if shard["content"] is not None
        ]
        receipts = engine.receipts(job, items)
    else:
        mine = units[reading_name(stage.reader)]
        receipts = engine.receipts(job, _file_items(stage.reader, mine, transforms))
        if stage.reader.keyed and len(mine) > 1:
            mine, inner = _without_repeats(stage, mine, receipts, engine)
            receipts = engine.receipts(job, _file_items(stage.reader, mine, transforms))
        check_damage(stage.reader, receipts)
    return commit_dataset(
        engine.store, MadeDataset(stage.name, key, describe_stage(stage), inputs, stage.schema, receipts, tuple(inner))
    )


def check_damage(reader: Reader, receipts: Sequence[Receipt]) -> None:
    """Raise where more of a source is damaged than its budget allows.

    Raises:
        InputError: the message has the share, the reasons, and where to look.
    """
    counts = merge_all([receipt.statistics["reading"] for receipt in receipts if "reading" in receipt.statistics])
    mine = counts.get(reader.source, {})
    for unit, places in (("bytes", ("stored", "stream")), ("rows", ("row",))):
        total = sum(mine.get("total", {}).get(place, 0) for place in places)
        gaps = mine.get("gaps", {})
        lost = sum(counted.get(place, 0) for counted in gaps.values() for place in places)
        if total and Fraction(lost, total) > Fraction(reader.max_damaged):
            raise InputError(
                f"source {reader.source!r}: {lost:,} of {total:,} {unit} lie in gaps ({', '.join(sorted(gaps))}), more "
                f"than the share {reader.max_damaged} of max_damaged. Is it the right reader for these files? The "
                "ledgers of its shards have every gap; raise max_damaged to go on without them"
            )


def _file_items(reader: Reader, units: Sequence[FileUnit], transforms: Sequence[object]) -> list[Item]:
    return [Item(chain_key(unit_key(reader, unit), transforms), unit.path, unit, unit.size) for unit in units]


def _without_repeats(
    stage: DocumentStage, units: Sequence[FileUnit], receipts: Sequence[Receipt], engine: Engine
) -> tuple[list[FileUnit], list[Receipt]]:
    """Return the units with the records that an earlier file holds too marked as repeats."""
    shards = tuple(receipt.key for receipt in receipts)
    records = sum((receipt.files["keys.parquet"].rows or 0) for receipt in receipts if "keys.parquet" in receipt.files)
    job = RepeatsJob(
        engine.store, f"{stage.name}: repeats", stage.sources[0], shards, tuple(unit.path for unit in units)
    )
    items = [
        Item(digest_json({"operation": "repeats", "shards": list(shards), "range": ids.described()}), "ids", ids)
        for ids in id_ranges(records)
    ]
    inner = engine.receipts(job, items)
    repeats = repeats_by_shard(engine.store, [item.key for item in items])
    return [replace(unit, repeats=repeats.get(i, frozenset())) for i, unit in enumerate(units)], inner
