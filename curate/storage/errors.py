"""Errors of storage, for all places."""

from __future__ import annotations


class StoreError(RuntimeError):
    """A broken promise of the store: a missing, damaged or conflicting file, or a place that cannot keep promises."""


class MissingError(StoreError):
    """A file that should be there is not."""
