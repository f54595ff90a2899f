"""The places where Hypothesis is asked for more than it documents, kept together.

Each degrades to what Hypothesis does by itself if a later version moves things; the tests would tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis.control import current_build_context
from hypothesis.internal.conjecture import providers
from hypothesis.internal.conjecture.data import Status
from hypothesis.internal.constants_ast import Constants


def cut_short() -> bool:
    """Whether Hypothesis is ending the current draw for reasons of its own (it grew too long)."""
    return current_build_context().data.status is Status.OVERRUN


@contextmanager
def own_draws_only() -> Iterator[None]:
    """Keep what is drawn from depending on which modules happen to be loaded.

    Hypothesis mixes constants found in the source of loaded modules, except installed ones, into what it
    draws. A seed would mean one thing in the tests and another on the command line.
    """
    provider, name = providers.HypothesisProvider, "_local_constants"
    found = vars(provider).get(name)
    if found is None:
        yield
        return
    providers.CONSTANTS_CACHE.cache.clear()
    setattr(provider, name, property(lambda self: Constants()))
    try:
        yield
    finally:
        setattr(provider, name, found)
        providers.CONSTANTS_CACHE.cache.clear()
