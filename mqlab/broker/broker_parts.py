"""What a part of a broker may use of the others: the parts, and nothing of how they are made, started and ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from mqlab.protocol.command import RemotingCommand
from mqlab.remoting import Channel

if TYPE_CHECKING:
    from mqlab.broker.broadcast_offset_manager import BroadcastOffsetManager
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.broker_executors import BrokerExecutors
    from mqlab.broker.broker_outer_api import BrokerOuterAPI
    from mqlab.broker.broker_stats import BrokerStats
    from mqlab.broker.consumer_manager import ConsumerManager
    from mqlab.broker.consumer_offset_manager import ConsumerOffsetManager
    from mqlab.broker.filter.consumer_filters import ConsumerFilters
    from mqlab.broker.ha.default_ha_service import DefaultHAService
    from mqlab.broker.notify_message_arriving_listener import NotifyMessageArrivingListener
    from mqlab.broker.producer_manager import ProducerManager
    from mqlab.broker.pull_request_hold_service import PullRequestHoldService
    from mqlab.broker.rebalance_lock_manager import RebalanceLockManager
    from mqlab.broker.schedule_message_service import ScheduleMessageService
    from mqlab.broker.subscription_group_manager import SubscriptionGroupManager
    from mqlab.broker.topic_config_manager import TopicConfigManager
    from mqlab.protocol.topic_config import DataVersion
    from mqlab.remoting import RemotingServer
    from mqlab.sim import Future, Node
    from mqlab.store import DefaultMessageStore, MessageExtBrokerInner, MessageStoreConfig, PutMessageResult
    from mqlab.store.timer import TimerMessageStore


Handler = Callable[[Channel, RemotingCommand], RemotingCommand | Coroutine[Any, Any, RemotingCommand]]
"""Answers one kind of request, at once or when others have answered; what it refuses at once is a RequestError."""


class BrokerParts:
    """A broker, as its parts see it: what needs none of those that are made of others (see `WholeBroker`)."""

    node: Node
    broker_config: BrokerConfig
    message_store_config: MessageStoreConfig
    config_version: DataVersion
    broker_ip: str
    stats: BrokerStats
    message_store: DefaultMessageStore
    remoting_server: RemotingServer
    broker_outer_api: BrokerOuterAPI
    executors: BrokerExecutors
    topic_config_manager: TopicConfigManager
    subscription_group_manager: SubscriptionGroupManager
    consumer_offset_manager: ConsumerOffsetManager
    schedule_message_service: ScheduleMessageService
    rebalance_lock_manager: RebalanceLockManager
    consumer_filters: ConsumerFilters
    consumer_manager: ConsumerManager
    producer_manager: ProducerManager
    broadcast_offset_manager: BroadcastOffsetManager
    pull_request_hold_service: PullRequestHoldService
    notify_message_arriving_listener: NotifyMessageArrivingListener
    start_us: int
    """When the broker's threads began, us since the world began: the grids of threads that are made late begin here."""

    made_ha: DefaultHAService | None
    """The part in replication, None while nobody has needed it."""

    timer: TimerMessageStore | None
    """The timer, if anything has needed it yet."""

    @property
    def store_host(self) -> str:
        """The address that messages say they lie at: where their readers find the broker."""
        raise NotImplementedError(f"{type(self).__name__} must define store_host")

    @property
    def timer_message_store(self) -> TimerMessageStore:
        """The timer, made now if there was none."""
        raise NotImplementedError(f"{type(self).__name__} must define timer_message_store")

    def prepare_message(
        self, message: MessageExtBrokerInner
    ) -> PutMessageResult | Future[PutMessageResult]:
        """Store a message of a transaction as a half message, which nobody can pull."""
        raise NotImplementedError(f"{type(self).__name__} must define prepare_message()")

    def update_min_broker(
        self, min_broker_id: int, min_broker_addr: str | None, offline_broker_addr: str | None, ha_addr: str | None
    ) -> None:
        """Hear from a name server which broker of the group has the smallest id now."""
        raise NotImplementedError(f"{type(self).__name__} must define update_min_broker()")

    def follow_settings(self) -> None:
        """Let those know of changed settings who do not look at them by themselves."""
        raise NotImplementedError(f"{type(self).__name__} must define follow_settings()")

    def timer_behind(self) -> bool:
        """Is the timer a second or more behind?"""
        raise NotImplementedError(f"{type(self).__name__} must define timer_behind()")

    async def register_broker_all(self, *, oneway: bool = False) -> None:
        """Report all topics to all name servers now."""
        raise NotImplementedError(f"{type(self).__name__} must define register_broker_all()")

    def describe_disk_use(self) -> str:
        """How full the disk is, as an answer to a producer says it."""
        raise NotImplementedError(f"{type(self).__name__} must define describe_disk_use()")
