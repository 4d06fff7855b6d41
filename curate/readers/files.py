"""Files: each file one document. Bytes become text as `transforms.decoding` decides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from curate.readers.events import End, Event, Read, Refused
from curate.readers.reader import Reader
from curate.readers.texts import text_values

BLOCK = 1 << 20


def read_file_events(file: BinaryIO, reader: Reader) -> Iterator[Event]:
    """Yield the one record of a file, or its refusal."""
    content = file.read(reader.max_record_bytes + 1)
    size = len(content)
    if size > reader.max_record_bytes:
        while block := file.read(BLOCK):
            size += len(block)
        yield Refused("stored", 0, size, "record too large", f"{size} bytes", None)
    else:
        yield Read("stored", 0, size, 0, None, text_values(content))
    yield End("stored", size)
