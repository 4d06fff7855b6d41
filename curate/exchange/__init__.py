"""Exchange: rows regrouped by partition between tasks, in files that are written and read in bounded memory.

A map task writes one file (`ExchangeWriter`), reduce tasks read their partition of all files as one sorted stream
(`merged`). `curate.regroup` makes tasks of it. Whatever the batches, the memory and the order of tasks, a file has the
same bytes.
"""

from typing import Final

from curate.exchange.blocks import FORMAT, Block, BlockWriter, Codec, ExchangeFile, Shape, WrittenExchange
from curate.exchange.limits import Limits, partition_of, spans
from curate.exchange.merging import merged
from curate.exchange.spilling import ExchangeWriter, write_merged, write_parts

LIMITS: Final = Limits()
"""The limits of the format."""

__all__ = [
    "FORMAT",
    "LIMITS",
    "Block",
    "BlockWriter",
    "Codec",
    "ExchangeFile",
    "ExchangeWriter",
    "Limits",
    "Shape",
    "WrittenExchange",
    "merged",
    "partition_of",
    "spans",
    "write_merged",
    "write_parts",
]
