"""datatrove's readers over folders of files: seconds of CPU and documents of each format.

Arguments: a folder with one folder per format, then the formats. Prints one JSON object, format → cpu, documents, MB of
text. The clock runs from the first file to the last document; libraries are imported before it.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from datatrove.pipeline.readers import CSVReader, JsonlReader, ParquetReader, WarcReader
from datatrove.utils.logging import logger


def reader_of(kind: str, folder: Path) -> Any:
    """Return its reader of files of this kind; datatrove has none for others."""
    name = kind.split(".")[0]
    made = {"warc": WarcReader, "wet": WarcReader, "jsonl": JsonlReader, "parquet": ParquetReader, "csv": CSVReader}
    return made[name](str(folder))


def cpu() -> float:
    """Return the CPU time of this process."""
    spent = os.times()
    return spent.user + spent.system


def main() -> None:
    """Read everything once and print what was measured."""
    logger.remove()
    root, found = Path(sys.argv[1]), {}
    for kind in sys.argv[2:]:
        reader = reader_of(kind, root / kind)
        began, documents, characters = cpu(), 0, 0
        try:
            for document in reader.run(None, 0, 1):
                documents += 1
                characters += len(document.text)
        except Exception as error:
            found[kind] = {"failed": f"{type(error).__name__}: {error}"[:200]}
            continue
        found[kind] = {"cpu": cpu() - began, "documents": documents, "characters": characters}
    print(json.dumps({"formats": found, "versions": {"datatrove": version("datatrove")}}))


if __name__ == "__main__":
    main()
