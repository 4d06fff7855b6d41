"""Which result of a store a command looks at where none is named."""

from __future__ import annotations

from curate.configuration import ConfigurationError
from curate.store import Store


def last_result(store: Store) -> str:
    """Return the folder of the result that ran last in `store`.

    Raises:
        ConfigurationError: no recipe has finished there.
    """
    from curate.run import results_in
    from curate.running.journal import finished_recipes

    there = results_in(store)
    finished = [event["folder"] for event in finished_recipes(store) if event["folder"] in there]
    if not there:
        raise ConfigurationError(
            f"{store.url('')} holds no result of a recipe: run one with curate run --store {store.url('')}"
        )
    return finished[-1] if finished else there[-1]
