"""Commands on token caches: tokens, export, import, extend. Each is a library call, too."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from curate.commands.store_options import STORE_HELP, add_store_options, store_of
from curate.configuration import ConfigurationError
from curate.receipts import committed_folders, read_manifest
from curate.store import Store
from curate.visible import visible

if TYPE_CHECKING:
    from curate.caches import TokenCache

BLOCK = 1 << 20
"""Documents whose ids are looked at together."""

EXPORTS: Final = ("datatrove", "litdata", "mds", "megatron", "npy")
"""Names in `curate.caches.FORMATS`, which is not imported for the sake of help."""


def add_tokens(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `tokens`."""
    command.set_defaults(command=tokens_command)
    command.add_argument("store", metavar="DIR", help=f"store with token caches: {STORE_HELP}")
    command.add_argument("--doc", required=True, metavar="ID", help="id of the document, 32 hex digits")
    command.add_argument("--ids", action="store_true", help="the ids, too")
    add_store_options(command)


def add_export(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `export`."""
    command.set_defaults(command=export_command)
    command.add_argument("store", metavar="DIR", help=f"a cache, or a store with caches: {STORE_HELP}")
    command.add_argument("--cell", metavar="NAME", help="which cache of a store (default: the only one)")
    command.add_argument("--format", choices=EXPORTS, required=True, help="whose format")
    command.add_argument("--to", type=Path, required=True, metavar="DIR", help="empty folder to write")
    add_store_options(command)


def add_import(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `import`."""
    command.set_defaults(command=import_command)
    command.add_argument("source", type=Path, metavar="PATH", help="a .ds file, or a folder with a shard_ledger.json")
    command.add_argument("--tokenizer", type=Path, required=True, metavar="FILE", help="what it was made with")
    command.add_argument("--bos", metavar="TOKEN", help="token that each document begins with (default: none)")
    command.add_argument("--eos", metavar="TOKEN", help="token that each document ends with (default: none)")
    command.add_argument("--name", required=True, help="name of the cell")
    command.add_argument("--to", required=True, metavar="DIR", help="empty folder to write")
    add_store_options(command)


def add_extend(command: argparse.ArgumentParser) -> None:
    """Add the arguments of `extend`."""
    command.set_defaults(command=extend_command)
    command.add_argument("store", metavar="CACHE", help=f"the cache to extend: {STORE_HELP}")
    command.add_argument("new", nargs="+", metavar="NEW", help="caches of new documents")
    command.add_argument("--to", required=True, metavar="DIR", help="empty folder to write")
    add_store_options(command)


def caches_of(store: Store) -> dict[str, TokenCache]:
    """Return the caches at a place: the one whose folder it is, or those of a store, by cell.

    Raises:
        ConfigurationError: there are none.
    """
    from curate.caches import TokenCache
    from curate.caches.description import NAME
    from curate.products import Caches

    if store.exists(NAME):
        return {(cache := TokenCache.open(store)).name: cache}
    found: dict[str, TokenCache] = {}
    for folder in committed_folders(store):
        manifest = read_manifest(store, folder)
        if manifest["kind"] == "caches":
            for cell, cache in Caches(store, folder, manifest).open().items():
                found[cell if cell not in found else f"{folder}/{cell}"] = cache
    if not found:
        raise ConfigurationError(f"{store.url('')} holds no token cache: a recipe makes them with tokenize(…)")
    return found


def chosen_cache(caches: Mapping[str, TokenCache], cell: str | None) -> TokenCache:
    """Return the cache of `cell`, or the only one.

    Raises:
        ConfigurationError: there is no such cell, or none was named and there are several.
    """
    if cell is None and len(caches) == 1:
        return next(iter(caches.values()))
    if cell is None or cell not in caches:
        raise ConfigurationError(f"--cell: one of {', '.join(caches)}" + (f", not {cell}" if cell else ""))
    return caches[cell]


def find_document(caches: Mapping[str, TokenCache], identity: bytes) -> tuple[str, int]:
    """Return the cell that holds a document, and its number there.

    Raises:
        ConfigurationError: none holds it.
    """
    import numpy as np

    wanted = np.frombuffer(identity, np.uint8)
    for cell, cache in caches.items():
        for first in range(0, len(cache), BLOCK):
            rows = (cache.ids(first, min(first + BLOCK, len(cache))) == wanted).all(axis=1)
            if rows.any():
                return cell, first + int(np.argmax(rows))
    raise ConfigurationError(f"no cache holds the document {identity.hex()}: curate where says where it is")


def tokens_command(options: argparse.Namespace) -> int:
    """Print the tokens of a document."""
    import numpy as np

    from curate.caches import stored_tokenizer
    from curate.caches.drawing import draw_borders
    from curate.datasets import open_dataset
    from curate.upkeep.trace import read_row
    from transforms.tokens import Tokenizer

    store = store_of(options)
    try:
        identity = bytes.fromhex(options.doc)
    except ValueError:
        identity = b""
    if len(identity) != 16:
        raise ConfigurationError(f"--doc {options.doc}: an id has 32 hex digits")
    caches = caches_of(store)
    cell, document = find_document(caches, identity)
    cache = caches[cell]
    described, shard, row = cache.lies_in(document)
    values = read_row(open_dataset(store, described["name"], described["key"]), shard, row)
    description = cache.description
    path = stored_tokenizer(store, description.tokenizer)
    encoder = Tokenizer(path, bos=description.bos_text, eos=description.eos_text).encoder()
    spans = encoder.encode_with_offsets(values["text"])
    same = np.array_equal(spans.ids, cache[document])
    text, tokens = values["text"], len(cache[document])
    print(f"{options.doc}: document {document:,} of {cell}, {len(text):,} characters, {tokens:,} tokens")
    if not same:
        print("its tokens in the cache are OTHERS than those drawn here: curate verify --deep")
    for line in draw_borders(text, spans, lambda index: encoder.decode([index]), _whole):
        print(line)
    if options.ids:
        print(" ".join(map(str, cache[document].tolist())))
    return 0 if same else 1


def _whole(text: str) -> str:
    return visible(text, len(text))


def export_command(options: argparse.Namespace) -> int:
    """Write a cache in another format and print the files."""
    from curate.caches import export_cache

    for path in export_cache(chosen_cache(caches_of(store_of(options)), options.cell), options.to, options.format):
        print(path)
    return 0


def import_command(options: argparse.Namespace) -> int:
    """Make a cache of another tool's and print what it is."""
    from curate.caches import import_cache
    from transforms.tokens import Tokenizer

    tokenizer = Tokenizer(options.tokenizer, bos=options.bos, eos=options.eos)
    print(import_cache(options.source, store_of(options, options.to), tokenizer, options.name))
    return 0


def extend_command(options: argparse.Namespace) -> int:
    """Write a new generation of a cache and print what it is."""
    from curate.caches import TokenCache, extend_cache

    old, *new = (TokenCache.open(store_of(options, place)) for place in (options.store, *options.new))
    print(extend_cache(store_of(options, options.to), old, new))
    return 0
