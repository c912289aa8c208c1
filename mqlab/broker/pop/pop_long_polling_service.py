"""Long polling for Pop: requests that found nothing wait until a message arrives or their time is nearly up."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from mqlab.broker.pop.pop_request import PopRequest
from mqlab.protocol.topics import is_pop_retry_topic_v2, parse_normal_topic
from mqlab.trace.events.pop import PopHeld, PopNotHeld, PopWoken

if TYPE_CHECKING:
    from mqlab.broker.broker_parts import BrokerParts
    from mqlab.broker.filter.message_filter import MessageFilter
    from mqlab.protocol.command import RemotingCommand
    from mqlab.protocol.headers import NotificationRequestHeader, PopMessageRequestHeader
    from mqlab.remoting import Channel
    from mqlab.sim.timer import Timer

PERIOD_MS = 20
_PERIOD_US = PERIOD_MS * 1_000
CLEAN_EVERY_US = 300_020_000
"""Five minutes, up to the first turn behind them: how often the service looks for topics and groups that are gone."""

ANY_QUEUE = -1

ARRIVED = "arrived"
FORCED = "forced"
TIMED_OUT = "timed out"
LEFT_OVER = "left over"
UNBLOCKED = "unblocked"
SHUTDOWN = "shutdown"


class PollingResult(Enum):
    """What became of a request that shall wait (org.apache.rocketmq.broker.longpolling.PollingResult)."""

    POLLING_SUC = "polling"
    POLLING_FULL = "polling full"
    POLLING_TIMEOUT = "polling timeout"
    NOT_POLLING = "not polling"


class PopLongPollingService:
    """Keeps requests by topic, group and queue, each queue's in the order in which their time is up.

    Its thread turns every 20 ms since the broker's start. A woken request is processed from the start, and may wait
    again with the time that it has left. Of Pop the request whose time is up first is woken, of Notification
    (`notify_last`) the one whose time is up last.

    Java: org.apache.rocketmq.broker.longpolling.PopLongPollingService. Differs from RocketMQ: the number of all that
    wait is always right (there it drifts, and is counted anew every 2 s); queues at which nobody waits are not kept;
    groups are told of a message in the order in which they first waited; the thread sleeps while no request is due.
    """

    def __init__(
        self, broker: BrokerParts, process_again: Callable[[PopRequest], None], *, notify_last: bool = False
    ) -> None:
        self._broker = broker
        self._node = broker.node
        self._config = broker.broker_config
        self._process_again = process_again
        self._notify_last = notify_last
        self.polling_map: dict[str, list[PopRequest]] = {}
        """`topic@group@queueId` -> the requests that wait there; the queue id is -1 for those that take any."""
        self.topic_cid_map: dict[str, dict[str, None]] = {}
        """Topic -> the groups that have ever waited for it."""
        self.total_polling_num = 0
        self.stopped = True
        self._orders = 0
        self._timer: Timer | None = None
        self._turn_us = 0
        self._next_clean_us = 0

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to keep requests."""
        self.stopped = False
        self._node.life.clock_listeners.append(self._arm_anew)

    def shutdown(self) -> None:
        """Keep no more requests, and wake all that wait."""
        if self.stopped:
            return
        self.stopped = True
        self._node.life.clock_listeners.remove(self._arm_anew)
        self._disarm()
        for key, requests in list(self.polling_map.items()):
            while requests:
                self._wake(self._take(key, requests, 0), SHUTDOWN)

    def held(self) -> list[PopRequest]:
        """All requests that wait at present, queue by queue."""
        return [request for requests in self.polling_map.values() for request in requests]

    def polling_num(self, topic: str, group: str, queue_id: int) -> int:
        """How many requests of a group wait for a queue, or for any with -1."""
        return len(self.polling_map.get(f"{topic}@{group}@{queue_id}", ()))

    # -- waiting ----------------------------------------------------------------------------------------------------

    def polling(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: PopMessageRequestHeader | NotificationRequestHeader,
        message_filter: MessageFilter | None = None,
    ) -> PollingResult:
        """Put a request aside, if there is room and time left (PopLongPollingService.polling)."""
        node = self._node
        result = self._park(channel, request, header, message_filter)
        if node.hooks.on:
            where = header.consumer_group, header.topic, header.queue_id
            if result is PollingResult.POLLING_SUC:
                hold_ms = header.born_time + header.poll_time - node.now_ms()
                node.hooks.emit(PopHeld(*where, hold_ms, request.opaque, channel.remote_address))
            else:
                node.hooks.emit(PopNotHeld(*where, result.value, request.opaque, channel.remote_address))
        return result

    def _park(
        self,
        channel: Channel,
        request: RemotingCommand,
        header: PopMessageRequestHeader | NotificationRequestHeader,
        message_filter: MessageFilter | None,
    ) -> PollingResult:
        if header.poll_time <= 0 or self.stopped:
            return PollingResult.NOT_POLLING
        topic, group = header.topic, header.consumer_group
        self.topic_cid_map.setdefault(topic, {})[group] = None
        if self.total_polling_num >= self._config.max_pop_polling_size:
            return PollingResult.POLLING_FULL
        node = self._node
        self._orders += 1
        kept = PopRequest(request, header, channel, self._orders, node.now_us(), message_filter)
        if node.now_ms() >= kept.wake_ms:
            return PollingResult.POLLING_TIMEOUT
        key = f"{topic}@{group}@{header.queue_id}"
        requests = self.polling_map.get(key)
        if requests is None:
            self._make_room()
            requests = self.polling_map[key] = []
        elif len(requests) > self._config.pop_polling_size:
            return PollingResult.POLLING_FULL
        insort(requests, kept)
        self.total_polling_num += 1
        self._arm(kept.wake_ms)
        return PollingResult.POLLING_SUC

    def _make_room(self) -> None:
        """The queue at which waiting began first gives way to one too many, and its requests are lost."""
        while len(self.polling_map) >= self._config.pop_polling_map_size:
            self._forget(next(iter(self.polling_map)))

    def _forget(self, key: str) -> None:
        self.total_polling_num -= len(self.polling_map.pop(key))

    def _take(self, key: str, requests: list[PopRequest], place: int) -> PopRequest:
        """Take out one of the requests of a queue."""
        request = requests.pop(place)
        self.total_polling_num -= 1
        if not requests:
            del self.polling_map[key]
        return request

    # -- waking -----------------------------------------------------------------------------------------------------

    def notify_message_arriving_with_retry_topic(
        self,
        topic: str,
        queue_id: int,
        offset: int = -1,
        tags_code: int | None = None,
        properties: Mapping[str, str] | None = None,
        msg_store_time: int = 0,
        filter_bit_map: bytes | None = None,
    ) -> None:
        """A message has arrived; one in a retry topic of the second form is one for those who wait for the plain topic.

        From the name of a retry topic of the first form the plain topic cannot be told, so nobody is woken.
        """
        if is_pop_retry_topic_v2(topic):
            topic = parse_normal_topic(topic)
        groups = self.topic_cid_map.get(topic)
        if groups is None:
            return
        interval = self._config.pop_long_polling_force_notify_interval
        force = interval > 0 and offset >= 0 and offset % interval == 0
        for group in groups:
            if queue_id >= 0:
                self.notify_message_arriving(
                    topic, ANY_QUEUE, group, force, tags_code, properties, ARRIVED, msg_store_time, filter_bit_map
                )
            self.notify_message_arriving(
                topic, queue_id, group, force, tags_code, properties, ARRIVED, msg_store_time, filter_bit_map
            )

    def notify_message_arriving(
        self,
        topic: str,
        queue_id: int,
        group: str,
        force: bool = False,
        tags_code: int | None = None,
        properties: Mapping[str, str] | None = None,
        reason: str = ARRIVED,
        msg_store_time: int = 0,
        filter_bit_map: bytes | None = None,
    ) -> bool:
        """Wake one request of a group that waits for this queue (-1: for any); whether one was woken.

        One that does not want the message goes on waiting, unless `force` says that so many messages have come that the
        group's offset shall move on behind those that it does not want.
        """
        key = f"{topic}@{group}@{queue_id}"
        requests = self.polling_map.get(key)
        while requests:
            request = self._take(key, requests, -1 if self._notify_last else 0)
            if request.channel.is_active:
                break
        else:
            return False
        wanted = request.message_filter
        if (
            not force
            and wanted is not None
            and not (
                wanted.is_matched_by_consume_queue(tags_code, msg_store_time, filter_bit_map)
                and (properties is None or wanted.is_matched_by_properties(properties))
            )
        ):
            self._put_back(key, request)
            return False
        return self._wake(request, FORCED if force else reason)

    def _put_back(self, key: str, request: PopRequest) -> None:
        insort(self.polling_map.setdefault(key, []), request)
        self.total_polling_num += 1

    def _wake(self, request: PopRequest, reason: str) -> bool:
        """Let a request be processed once more, unless its client is gone (PopLongPollingService.wakeUp)."""
        if request.completed:
            return False
        request.completed = True
        if not request.channel.is_active:
            return False
        node = self._node
        if node.hooks.on:
            header = request.header
            node.hooks.emit(
                PopWoken(
                    header.consumer_group,
                    header.topic,
                    header.queue_id,
                    reason,
                    node.now_us() - request.parked_us,
                    request.request.opaque,
                    request.channel.remote_address,
                )
            )
        self._process_again(request)
        return True

    # -- turns ------------------------------------------------------------------------------------------------------

    def _arm(self, wake_ms: int) -> None:
        """Turn at the first place of the grid at which it is `wake_ms`, or earlier if that was said before."""
        now_us = self._node.now_us()
        if self._next_clean_us <= now_us:
            self._next_clean_us = self._clean_time_behind(now_us)
        turn_us = min(self._grid_at(now_us + self._node.us_until(wake_ms)), self._next_clean_us)
        if self._timer is None or turn_us < self._turn_us:
            self._disarm()
            self._turn_us = turn_us
            name = "NotificationLongPolling" if self._notify_last else "PopLongPollingService"
            self._timer = self._node.call_later((turn_us - now_us) / 1_000, self._turn, name=name)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm_anew(self) -> None:
        """Set the timer for who is due first; nobody waits, no timer."""
        self._disarm()
        if self.polling_map:
            self._arm(min(requests[0].wake_ms for requests in self.polling_map.values()))

    def _grid_at(self, earliest_us: int) -> int:
        """The first turn behind now that is not before `earliest_us`."""
        origin_us = self._broker.start_us
        beyond_us = max(earliest_us, self._node.now_us() + 1) - origin_us
        return origin_us - (-beyond_us // _PERIOD_US) * _PERIOD_US

    def _clean_time_behind(self, now_us: int) -> int:
        """When the service looks for what is gone: at its first turn with a request, then every five minutes."""
        if not self._next_clean_us:
            return self._grid_at(now_us)
        return self._next_clean_us + ((now_us - self._next_clean_us) // CLEAN_EVERY_US + 1) * CLEAN_EVERY_US

    def _turn(self) -> None:
        self._timer = None
        now_us, now_ms = self._node.now_us(), self._node.now_ms()
        for key, requests in list(self.polling_map.items()):
            while requests and requests[0].wake_ms <= now_ms:
                self._wake(self._take(key, requests, 0), TIMED_OUT)
        if self._next_clean_us <= now_us:
            self._clean_unused_resource()
        self._arm_anew()

    def _clean_unused_resource(self) -> None:
        """Forget topics and groups that are gone; who still waits there is never answered, as in RocketMQ."""
        topics = self._broker.topic_config_manager.topic_config_table
        groups = self._broker.subscription_group_manager
        for topic in [topic for topic in self.topic_cid_map if topic not in topics]:
            del self.topic_cid_map[topic]
        for known in self.topic_cid_map.values():
            for group in [group for group in known if not groups.contains_subscription_group(group)]:
                del known[group]
        for key in list(self.polling_map):
            topic, group, _ = key.split("@")
            if topic not in topics or not groups.contains_subscription_group(group):
                self._forget(key)
