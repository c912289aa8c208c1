"""Where half messages lie that a proxy has sent, or was asked about: without that it cannot end their transactions."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, NamedTuple

from mqlab.sim.service import ServiceThread

if TYPE_CHECKING:
    from mqlab.proxy.proxy_config import ProxyConfig
    from mqlab.sim import Node


class TransactionData(NamedTuple):
    """A half message, and until when (ms since 1970) a proxy knows of it; offsets as in an END_TRANSACTION.

    Java: org.apache.rocketmq.proxy.service.transaction.TransactionData. They sort as there: by that time first.
    """

    expire_time: int
    broker_name: str
    commit_log_offset: int
    tran_state_table_offset: int
    transaction_id: str


class TransactionDataManager:
    """What a proxy knows of half messages, for 30 s each, by group (which is the topic) and transaction id.

    A message may have several, as it is stored again whenever a broker asks about it: 15 at most. Whoever ends a
    transaction takes the newest, and an end that comes again finds nothing. All of it dies with the process.

    Java: org.apache.rocketmq.proxy.service.transaction.TransactionDataManager. Differs from RocketMQ: a proxy that is
    stopped in good order does not wait for what it still knows; its port is closed by then, so nobody could use it.
    """

    def __init__(self, node: Node, config: ProxyConfig) -> None:
        self._node = node
        self._expire_ms = config.transaction_data_expire_millis
        self._most = config.transaction_data_max_num
        self._data: dict[tuple[str, str], list[TransactionData]] = {}
        self.cleaner = TransactionDataCleaner(node, self, config.transaction_data_expire_scan_period_millis)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known."""
        return not self._data

    def add(
        self, group: str, transaction_id: str, broker_name: str, tran_state_table_offset: int, commit_log_offset: int
    ) -> None:
        """Know of a half message from now on; of one too many of the same transaction the oldest is forgotten.

        Java: org.apache.rocketmq.proxy.service.transaction.TransactionDataManager.addTransactionData.
        """
        expire_time = self._node.now_ms() + self._expire_ms
        data = TransactionData(expire_time, broker_name, commit_log_offset, tran_state_table_offset, transaction_id)
        known = self._data.setdefault((group, transaction_id), [])
        if data not in known:
            insort(known, data)
        if len(known) > self._most:
            del known[0]
        self.cleaner.wakeup_for_work()

    def poll(self, group: str, transaction_id: str) -> TransactionData | None:
        """Take the newest half message of a transaction out; None when none is known that has not expired.

        Java: org.apache.rocketmq.proxy.service.transaction.TransactionDataManager.pollNoExpireTransactionData.
        """
        known = self._data.get((group, transaction_id))
        if known is None:
            return None
        newest = known.pop()
        if newest.expire_time < self._node.now_ms():
            known.clear()
        if not known:
            del self._data[group, transaction_id]
        return newest if newest.expire_time >= self._node.now_ms() else None

    def clean_expired(self) -> None:
        """Forget what has expired."""
        now_ms = self._node.now_ms()
        for key, known in list(self._data.items()):
            known[:] = [data for data in known if data.expire_time >= now_ms]
            if not known:
                del self._data[key]


class TransactionDataCleaner(ServiceThread):
    """Looks every 10 s for what has expired (TransactionDataManager.TransactionDataCleaner)."""

    def __init__(self, node: Node, manager: TransactionDataManager, period_ms: int) -> None:
        super().__init__(node, "TransactionDataCleaner", period_ms)
        self._manager = manager

    def has_work(self) -> bool:
        """Is anything known?"""
        return not self._manager.is_empty

    def tick(self) -> None:
        """Forget what has expired."""
        self._manager.clean_expired()
