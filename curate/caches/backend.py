"""Which library encodes: `tokenizers`, which is right by definition, or the fast backend while it agrees.

The driver decides before any task runs, and finds the characters that are left to the reference; workers are told. So a
stage has one backend, whatever is installed where. A difference in the sample of any task is one of all: then every
task encodes again by the reference (`FALL_BACK`), or the run ends (`STOP`). No byte of a cache depends on it but the
record of it, so it stands in no key of a stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from curate.caches.errors import CacheError
from curate.caches.plan import Plan
from curate.configuration import ConfigurationError
from transforms.fast_tokens import FastEncoder, NoFastBackendError, backend_name
from transforms.tokens import Tokenizer

FALL_BACK: Final = "fall back"
"""Use the fast backend where it is installed and agrees; else, and after a difference, the reference."""

STOP: Final = "stop"
"""Use the fast backend; that it is not there, refuses the tokenizer or differs ends the run."""

NEVER: Final = "never"
"""Use the reference."""

CHOICES: Final = (FALL_BACK, STOP, NEVER)


@dataclass(frozen=True, slots=True)
class Backend:
    """What encodes.

    Attributes:
        choice: one of `CHOICES`.
        name: of the fast backend with its version, None for the reference.
        left_out: code points that are left to the reference.
        why: why the reference is used although it need not be; "" for no reason.
    """

    choice: str = NEVER
    name: str | None = None
    left_out: tuple[int, ...] = ()
    why: str = ""

    def check(self, differing: int, shard: str) -> None:
        """Stop where `differing` documents of a shard's sample have other ids, and that is asked for.

        Raises:
            CacheError: so it is.
        """
        if differing and self.choice == STOP:
            raise CacheError(
                f"{self.name} gives {differing} of the compared documents of shard {shard[:16]} other ids than the "
                'tokenizers library: tokenize with fast="never" or "fall back", and report the document'
            )

    def after(self, differing: int) -> Backend:
        """Return the reference, with the reason, where `differing` documents of all samples have other ids."""
        if not differing:
            return self
        return Backend(self.choice, why=f"{self.name} gave {differing} of the compared documents other ids")

    def to_json(self, compared: dict[str, int]) -> dict[str, Any]:
        """Return what a manifest says of it."""
        return {"asked": self.choice, "used": self.name or "tokenizers", "why": self.why, "compared": compared}


REFERENCE: Final = Backend()


def choose_backend(choice: str, tokenizer: Tokenizer) -> Backend:
    """Return the backend that is used for `tokenizer`, after trying it here.

    Raises:
        ConfigurationError: `choice` is none of `CHOICES`.
        CacheError: the fast backend cannot be used, and is to stop then.
    """
    if choice not in CHOICES:
        raise ConfigurationError(f"fast={choice!r}: one of {', '.join(map(repr, CHOICES))}")
    if choice == NEVER:
        return REFERENCE
    try:
        found = _loaded(tokenizer)
        found.try_out()
    except NoFastBackendError as error:
        if choice == STOP:
            raise CacheError(f'{error}; tokenize with fast="never" or "fall back"') from None
        return Backend(choice, why=str(error))
    return Backend(choice, found.name, found.left_out or ())


def fast_encoder(plan: Plan, backend: Backend) -> FastEncoder | None:
    """Return what encodes on this worker, loaded once per process; None for the reference.

    Raises:
        CacheError: this worker has another fast backend than the driver, or it gives other ids here.
    """
    if backend.name is None:
        return None
    if backend_name() != backend.name:
        raise CacheError(f"this worker has {backend_name() or 'no gigatoken'}, the driver {backend.name}: install it")
    try:
        found = _loaded(plan.tokenizer)
        found.try_out(backend.left_out)
    except NoFastBackendError as error:
        raise CacheError(f'on this worker, not on the driver: {error}; tokenize with fast="never"') from None
    return found


@lru_cache(maxsize=4)
def _loaded(tokenizer: Tokenizer) -> FastEncoder:  # wherever its file lies
    return FastEncoder(tokenizer.encoder())
