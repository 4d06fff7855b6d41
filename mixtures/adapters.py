"""A plan's sequences as other frameworks take them. Each is a view of the loader; order and content are the plan's.

`SequenceSource` and `BatchSource` have a length and `[i]`, which is all that PyTorch's `DataLoader` and Grain's
`DataLoader` ask of a source, so neither needs to be installed here. They can be pickled, for worker processes.

    DataLoader(BatchSource(loader), batch_size=None, sampler=range(start, len(plan) // plan.batch))     # PyTorch
    grain.MapDataset.source(SequenceSource(loader)).batch(plan.batch)                                   # Grain
    for batch in jax_batches(loader, NamedSharding(mesh, PartitionSpec("data"))): …                     # JAX

Leave shuffling off: the plan has shuffled already, and a restart at step s begins at s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from mixtures.loader import Batch, Loader

ARRAYS = ("tokens", "segments", "positions", "loss_mask")
"""What a sequence consists of; see `Batch`."""


@dataclass(frozen=True, slots=True)
class SequenceSource:
    """Sequences of a plan, in its order: `source[i]` is a dictionary of arrays with one value per token."""

    loader: Loader

    def __len__(self) -> int:
        return len(self.loader)

    def __getitem__(self, sequence: int) -> dict[str, npt.NDArray[Any]]:
        """Return sequence number `sequence`; see `Batch` for its arrays.

        Raises:
            IndexError: the plan has no such sequence.
        """
        return {name: array[0] for name, array in arrays_of(self.loader[sequence]).items()}

    def __repr__(self) -> str:  # Grain keeps it in checkpoints to tell whether the source is another
        return f"SequenceSource({self.loader.digest})"


@dataclass(frozen=True, slots=True)
class BatchSource:
    """Batches of a plan, in its order: `source[step]` is a dictionary of arrays of shape (sequences, tokens).

    Of `processes` hosts, `process` gets its part of each batch.
    """

    loader: Loader
    process: int = 0
    processes: int = 1

    def __len__(self) -> int:
        return self.loader.plan.steps

    def __getitem__(self, step: int) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of `step` that belong to this process.

        Raises:
            IndexError: the plan has no such step.
            ValueError: a batch cannot be split into so many parts.
        """
        return arrays_of(self.loader.slice(step, self.process, self.processes))

    def __repr__(self) -> str:
        return f"BatchSource({self.loader.digest}, {self.process} of {self.processes})"


def arrays_of(batch: Batch) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of `batch` by name."""
    return {name: getattr(batch, name) for name in ARRAYS}


def jax_batches(loader: Loader, sharding: Any, start: int = 0, stop: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the batches of steps `start` to `stop` - 1 as global `jax.Array`s, read ahead.

    Args:
        loader: the plan's loader; each process of `jax.distributed` reads its own rows.
        sharding: a `jax.sharding.Sharding` over (sequences, tokens) that splits sequences evenly over processes, in
            their order.
        start: first step.
        stop: step to end before, None for the plan's end.

    Raises:
        IndexError: the plan has no such steps.
        ValueError: a batch cannot be split over the processes.
    """
    import jax

    place: Any = jax.make_array_from_process_local_data
    shape = loader.plan.batch, loader.plan.sequences.length
    process, processes = jax.process_index(), jax.process_count()
    for batch in loader.batches(start, stop, process=process, processes=processes):
        yield {name: place(sharding, array, shape) for name, array in arrays_of(batch).items()}
