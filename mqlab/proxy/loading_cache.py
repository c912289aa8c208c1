"""A cache that loads what it is asked for, and loads it anew now and then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from mqlab.errors import MqlabError
from mqlab.sim import Future

if TYPE_CHECKING:
    from mqlab.sim import Node

V = TypeVar("V")


class _Entry(Generic[V]):
    __slots__ = ("accessed_us", "refreshing", "value", "written_us")

    def __init__(self, value: V, now_us: int) -> None:
        self.value = value
        self.written_us = self.accessed_us = now_us
        self.refreshing = False


class LoadingCache(Generic[V]):
    """Values by name (com.github.benmanes.caffeine.cache.LoadingCache).

    What is older than `refresh_ms` is still given out once more, while a new value is on its way; what nobody asked for
    in `expire_ms` is forgotten. A first load that fails raises its error and leaves nothing; one that would refresh and
    fails leaves the old value for another `refresh_ms`. Differs from Caffeine: there is no largest size.
    """

    def __init__(
        self, node: Node, name: str, load: Callable[[str], Awaitable[V]], refresh_seconds: int, expire_seconds: int
    ) -> None:
        self._node = node
        self._name = name
        self._load = load
        self._refresh_us = refresh_seconds * 1_000_000
        self._expire_us = expire_seconds * 1_000_000
        self._entries: dict[str, _Entry[V]] = {}
        self._loading: dict[str, Future[V]] = {}

    async def get(self, key: str) -> V:
        """The value; who asks while it is loaded waits for the same load."""
        now_us = self._node.now_us()
        entry = self._entries.get(key)
        if entry is None or now_us - entry.accessed_us >= self._expire_us:
            return await self._first(key)
        entry.accessed_us = now_us
        if now_us - entry.written_us >= self._refresh_us and not entry.refreshing:
            entry.refreshing = True
            self._node.spawn(self._refresh(key, entry), f"refresh {self._name}")
        return entry.value

    async def _first(self, key: str) -> V:
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = Future(f"{self._name} of {key}")
            self._node.spawn(self._fill(key, loading), f"load {self._name}")
        return await loading

    async def _fill(self, key: str, loading: Future[V]) -> None:
        try:
            value = await self._load(key)
        except MqlabError as error:
            del self._loading[key]
            loading.set_exception(error)
            return
        del self._loading[key]
        self._entries[key] = _Entry(value, self._node.now_us())
        loading.set_result(value)

    async def _refresh(self, key: str, entry: _Entry[V]) -> None:
        # Without a new value the old one stays, and who asks after another period lets it be tried again.
        with suppress(MqlabError):
            entry.value = await self._load(key)
        entry.written_us = self._node.now_us()
        entry.refreshing = False
