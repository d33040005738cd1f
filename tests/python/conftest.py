"""Fixtures that several files of tests use."""

from client_worlds import era, nothing_left, server, transport, world

__all__ = ["era", "nothing_left", "server", "transport", "world"]
