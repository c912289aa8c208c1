"""The way to a broker's filters by SQL92: their manager is made when somebody first asks for such a filter."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from mqlab.protocol.heartbeat import ExpressionType

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.filter.consumer_filter_manager import ConsumerFilterManager
    from mqlab.protocol.heartbeat import SubscriptionData
    from mqlab.sim.timer import Timer

PERSIST_PERIOD_MS = 10_000
_PERSIST_US = PERSIST_PERIOD_MS * 1_000


class ConsumerFilters:
    """Tells a broker's ConsumerFilterManager of groups that come and go, and has it write its file every 10 s.

    Differs from RocketMQ: a broker that was never told of a filter other than tags has no manager, and writes no
    consumerFilter.json.
    """

    def __init__(self, broker: BrokerParts) -> None:
        self._broker = broker
        self._path = f"{broker.message_store_config.path('config')}/consumerFilter.json"
        self._persisting: Timer | None = None
        self._works = False
        self.made: ConsumerFilterManager | None = None
        """The manager, None while nobody has needed it."""

    @property
    def manager(self) -> ConsumerFilterManager:
        """The manager, made now if there was none."""
        made = self.made
        if made is None:
            from mqlab.broker.filter.commit_log_dispatcher_calc_bit_map import CommitLogDispatcherCalcBitMap
            from mqlab.broker.filter.consumer_filter_manager import ConsumerFilterManager

            broker = self._broker
            made = self.made = ConsumerFilterManager(broker.node, self._path, broker.broker_config)
            calculate = CommitLogDispatcherCalcBitMap(broker.node.hooks, broker.broker_config, made)
            broker.message_store.dispatcher_list.insert(0, calculate.dispatch)
            self._arm()
        return made

    # -- life -------------------------------------------------------------------------------------------------------

    def load_or_fail(self) -> None:
        """Read the file, if there is one; LearnerError when it cannot be read."""
        if any(self._broker.node.disk.exists(path) for path in (self._path, f"{self._path}.bak")):
            self.manager.load_or_fail()

    def start(self) -> None:
        """Write the file in its rhythm from now on."""
        self._works = True
        self._arm()

    def shutdown(self) -> None:
        """Write the file for the last time."""
        self._works = False
        if self._persisting is not None:
            self._persisting.cancel()
            self._persisting = None
        if self.made is not None:
            self.made.persist()

    def _arm(self) -> None:
        """Set the timer to the next full 10 s since the broker's start, if there is a table to write."""
        if self._works and self.made is not None and self._persisting is None:
            node = self._broker.node
            wait_us = _PERSIST_US - (node.now_us() - self._broker.start_us) % _PERSIST_US
            self._persisting = node.call_later(wait_us / 1_000, self._persist_in_turn, name="persist consumer filters")

    def _persist_in_turn(self) -> None:
        self._persisting = None
        if self.made is not None:
            self.made.persist()
        self._arm()

    # -- groups -----------------------------------------------------------------------------------------------------

    def group_registered(self, group: str, subscriptions: Collection[SubscriptionData]) -> None:
        """A heartbeat says what a group subscribes to."""
        if self.made is None and all(ExpressionType.is_tag_type(each.expression_type) for each in subscriptions):
            return
        self.manager.register(group, subscriptions)

    def group_unregistered(self, group: str) -> None:
        """The last member of a group has gone."""
        if self.made is not None:
            self.made.un_register(group)
