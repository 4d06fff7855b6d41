"""Create-if-absent on file systems without hard links, as some that are mounted over a network.

A claim is a small file, created exclusively, that says which digest a name is going to have; the file then takes its
name by a rename. Who finds the claim of another goes on when it says the same digest (renaming equal bytes over equal
bytes harms nobody) and is told of the other digest when it does not. So nobody waits for a process that died.

Invariant: a name is renamed to only under a claim of that digest, after looking whether the name is taken; and a claim
is given up only when its name is taken.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from curate.digests import digest_bytes, digest_file
from curate.storage.spool import spool_name

PREFIX: Final = "claim-"
"""What names of claims in the spool folder begin with."""

TORN_SECONDS: Final = 2.0
"""How long a claim may stay half-written before it counts as that of a process that died while writing it."""

_LENGTH: Final = 64


def create_by_claim(source: Path, target: Path, digest: str, folder: Path) -> str:
    """Rename `source` to `target` unless it is taken; return the digest of what is there, or is claimed to be."""
    claim = folder / f"{PREFIX}{digest_bytes(os.fsencode(target))[:32]}"
    claimed = _claim(claim, digest, target)
    if target.exists():
        digest = digest_file(target)
    elif claimed == digest:
        source.rename(target)
    else:
        return claimed  # who claimed it has not published yet, or died: either way two attempts differ
    claim.unlink(missing_ok=True)
    return digest


def remove_settled_claims(folder: Path) -> int:
    """Remove claims of names that are taken, which processes left that were killed just then; return how many."""
    settled = 0
    for claim in sorted(folder.glob(f"{PREFIX}*")):
        with suppress(FileNotFoundError):
            _, _, target = claim.read_bytes().partition(b"\n")
            if target and Path(os.fsdecode(target)).exists():
                claim.unlink()
                settled += 1
    return settled


def _claim(claim: Path, digest: str, target: Path) -> str:
    """Claim `target` for `digest` unless it is claimed; return the digest that it is claimed for."""
    content = digest.encode() + b"\n" + os.fsencode(target)
    deadline = time.monotonic() + TORN_SECONDS
    while True:
        try:
            descriptor = os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        except FileExistsError:
            with suppress(FileNotFoundError):
                found = claim.read_bytes()
                if len(found) > _LENGTH:
                    return found[:_LENGTH].decode("ascii", "replace")
            if time.monotonic() > deadline:
                _take_over(claim, content)
            time.sleep(0.01)
            continue
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return digest


def _take_over(claim: Path, content: bytes) -> None:
    """Replace a torn claim with a whole one; the next look says whose it became."""
    mine = claim.with_name(spool_name())
    mine.write_bytes(content)
    mine.replace(claim)
