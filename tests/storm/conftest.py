"""The two sides of a socket, as the tests of serving have them."""

from tests.serving.conftest import connect, servers

__all__ = ["connect", "servers"]
