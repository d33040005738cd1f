"""Fixtures that several files of tests use."""

import gc

from client_worlds import era, nothing_left, server, transport, world

__all__ = ["era", "nothing_left", "server", "transport", "world"]


def pytest_collection_finish() -> None:
    """Keeps what the files have imported out of later collections of garbage.

    `nothing_left` collects twice for each test. With the frameworks of the adapters
    imported, each collection took a quarter of a second.
    """
    gc.collect()
    gc.freeze()
