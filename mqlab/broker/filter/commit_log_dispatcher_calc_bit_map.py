"""Judging a message by all filters of its topic when it is dispatched, once, for all who will read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.filter import BitsArray, FilterEvaluationError
from mqlab.trace.events.filter import FilterBitMapCalculated

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.broker.filter.consumer_filter_manager import ConsumerFilterManager
    from mqlab.store.dispatch_request import DispatchRequest
    from mqlab.trace.bus import Bus


class CommitLogDispatcherCalcBitMap:
    """Gives a stored message the bits of all groups that want it, if `enable_calc_filter_bit_map` is set.

    Java: org.apache.rocketmq.broker.filter.CommitLogDispatcherCalcBitMap. The first of the dispatchers, so that the
    queue can keep the bits (`enable_consume_queue_ext`); filters of groups that are gone take part for as long as they
    are known. For a group that cannot judge a message no bits are set.
    """

    def __init__(self, hooks: Bus, config: BrokerConfig, filters: ConsumerFilterManager) -> None:
        self._hooks = hooks
        self._config = config
        self._filters = filters

    def dispatch(self, request: DispatchRequest) -> None:
        """Judge a stored message."""
        if not self._config.enable_calc_filter_bit_map:
            return
        filters = self._filters.get_by_topic(request.topic)
        if not filters:
            return
        bloom = self._filters.bloom_filter
        bits = BitsArray(bloom.m)
        wanted = []
        for group, data in filters.items():
            if data.compiled_expression is None or data.bloom_filter_data is None:
                continue
            try:
                value = data.compiled_expression.evaluate(request.properties)
            except FilterEvaluationError:
                continue
            if value is True:
                bloom.hash_to(data.bloom_filter_data, bits)
                wanted.append(group)
        request.bit_map = bits.bytes
        if self._hooks.on:
            self._hooks.emit(
                FilterBitMapCalculated(
                    request.topic, request.queue_id, request.consume_queue_offset, ",".join(sorted(wanted))
                )
            )
