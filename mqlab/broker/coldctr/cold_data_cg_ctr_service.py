"""How many old messages each group reads from the disk, and who has read too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mqlab.broker.coldctr.cold_ctr_strategy import (
    EXPECTED_SHARE,
    ColdCtrStrategy,
    PIDAdaptiveColdCtrStrategy,
    SimpleColdCtrStrategy,
)
from mqlab.protocol import fastjson
from mqlab.protocol.topics import (
    DEFAULT_CONSUMER_GROUP,
    SELF_TEST_CONSUMER_GROUP,
    TOOLS_CONSUMER_GROUP,
    is_sys_consumer_group,
)
from mqlab.sim import ServiceThread

if TYPE_CHECKING:
    from mqlab.broker.broker_config import BrokerConfig
    from mqlab.sim import Node

CLEAR_PERIOD_MS = 5_000
RESIDE_TIMEOUT_MS = 60_000
ADAPTIVE = "||adaptive"
MAX_DECELERATE = 3
_SYS_GROUPS = frozenset((
    DEFAULT_CONSUMER_GROUP, TOOLS_CONSUMER_GROUP, "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER", "__MONITOR_CONSUMER",
    SELF_TEST_CONSUMER_GROUP, "CID_ONS-HTTP-PROXY", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL",
))  # fmt: skip


def is_sys_consumer_group_pull_message(group: str) -> bool:
    """Is it a group that nobody holds back? (org.apache.rocketmq.common.MixAll.isSysConsumerGroupPullMessage)"""
    return group in _SYS_GROUPS or is_sys_consumer_group(group)


class AccAndTimeStamp:
    """What a group has read from the disk since the last clearing, bytes (org.apache.rocketmq.common.coldctr)."""

    def __init__(self, cold_acc: int, now_ms: int) -> None:
        self.cold_acc = cold_acc
        self.last_cold_read_time_mills = self.create_time_mills = now_ms

    def to_json(self) -> dict[str, int]:
        """As an administrator is shown it."""
        return {
            "coldAcc": self.cold_acc,
            "createTimeMills": self.create_time_mills,
            "lastColdReadTimeMills": self.last_cold_read_time_mills,
        }


class ColdDataCgCtrService(ServiceThread):
    """Counts what each group reads from the disk, and begins anew every 5 s.

    A group has to wait while it has read 3 MiB of old messages since then (cgColdReadThreshold, or what an
    administrator set for it), or all groups together 100 MiB (globalColdReadThreshold). One that has read none for a
    minute is forgotten. With coldCtrStrategyEnable the limits of groups move.

    Java: org.apache.rocketmq.broker.coldctr.ColdDataCgCtrService. As there the group of a limit that was moved is taken
    to be the first letter of its name when somebody asks whether an administrator has set one (the suffix "||adaptive"
    is read as a regular expression that fits between any two letters). Differs from RocketMQ: tables are shown in the
    order in which groups came, there in that of a Java map.
    """

    def __init__(self, node: Node, config: BrokerConfig) -> None:
        super().__init__(node, period_ms=CLEAR_PERIOD_MS)
        self.broker_config = config
        self.global_acc = 0
        self.cg_cold_threshold_map_runtime: dict[str, AccAndTimeStamp] = {}
        self.cg_cold_threshold_map_config: dict[str, int] = {}
        self._strategy: ColdCtrStrategy = SimpleColdCtrStrategy(self)
        if config.use_pid_cold_ctr_strategy:
            expected = int(config.global_cold_read_threshold * EXPECTED_SHARE)
            self._strategy = PIDAdaptiveColdCtrStrategy(self, expected)

    # -- the rhythm -------------------------------------------------------------------------------------------------

    def has_work(self) -> bool:
        """Has anybody read old messages, or do limits move?"""
        moved = any(key.endswith(ADAPTIVE) for key in self.cg_cold_threshold_map_config)
        return bool(self.cg_cold_threshold_map_runtime) or self.broker_config.cold_ctr_strategy_enable or moved

    def tick(self) -> None:
        """Forget who has not read for a minute, move limits, begin to count anew."""
        adaptive, table = self.broker_config.cold_ctr_strategy_enable, self.cg_cold_threshold_map_runtime
        if adaptive:
            self._strategy.collect(self.global_acc)
        for group, acc in list(table.items()):
            if self.node.now_ms() >= acc.last_cold_read_time_mills + RESIDE_TIMEOUT_MS:
                del table[group]
                if adaptive:
                    self.cg_cold_threshold_map_config.pop(group + ADAPTIVE, None)
            elif adaptive and acc.cold_acc >= (threshold := self._threshold_of(group)) and self._may_grow(group):
                self._strategy.promote(group + ADAPTIVE, threshold)
            acc.cold_acc = 0
        if adaptive:
            self._sort_and_decelerate()
        self.global_acc = 0
        if not adaptive:
            for key in [key for key in self.cg_cold_threshold_map_config if key.endswith(ADAPTIVE)]:
                del self.cg_cold_threshold_map_config[key]

    def _may_grow(self, group: str) -> bool:
        return not self.is_global_cold_ctr and not self._is_admin_config(group)

    def _sort_and_decelerate(self) -> None:
        """Let the three highest limits that were moved be lowered."""
        limits = sorted(self.cg_cold_threshold_map_config.items(), key=lambda entry: -entry[1])
        moved = [key for key, _ in limits if not self._is_admin_config(key)]
        for key in moved[:MAX_DECELERATE]:
            self._strategy.decelerate(key, self._threshold_of(key))

    # -- counting and limits ----------------------------------------------------------------------------------------

    def cold_acc(self, group: str, cold_bytes: int) -> None:
        """Note that a group has read so much from the disk."""
        if cold_bytes <= 0:
            return
        self.global_acc += cold_bytes
        now_ms, acc = self.node.now_ms(), self.cg_cold_threshold_map_runtime.get(group)
        if acc is None:
            self.cg_cold_threshold_map_runtime[group] = AccAndTimeStamp(cold_bytes, now_ms)
            self.wakeup_for_work()
        else:
            acc.cold_acc += cold_bytes
            acc.last_cold_read_time_mills = now_ms

    def is_cg_need_cold_data_flow_ctr(self, group: str) -> bool:
        """Has the group, or have all together, read so much that it must wait?"""
        acc = self.cg_cold_threshold_map_runtime.get(group)
        if acc is None or is_sys_consumer_group_pull_message(group):
            return False
        return acc.cold_acc >= self._threshold_of(group) or (
            self.global_acc >= self.broker_config.global_cold_read_threshold
        )

    @property
    def is_global_cold_ctr(self) -> bool:
        """Have all groups together read more than they may?"""
        return self.global_acc > self.broker_config.global_cold_read_threshold

    def add_or_update_group_config(self, key: str, threshold: int) -> None:
        """Set how many bytes a group may read from the disk in 5 s."""
        self.cg_cold_threshold_map_config[key] = threshold
        self.wakeup_for_work()

    def remove_group_config(self, key: str) -> None:
        """Let the limit of every group be that of this group again."""
        self.cg_cold_threshold_map_config.pop(key, None)

    def _threshold_of(self, key: str) -> int:
        limits, config = self.cg_cold_threshold_map_config, self.broker_config
        if self._is_admin_config(key):
            return limits[_group_of(key)]
        if config.cold_ctr_strategy_enable:
            moved = limits.get(key if key.endswith(ADAPTIVE) else key + ADAPTIVE)
            if moved is not None:
                return moved
        return config.cg_cold_read_threshold

    def _is_admin_config(self, key: str) -> bool:
        return _group_of(key) in self.cg_cold_threshold_map_config

    def get_cold_data_flow_ctr_info(self) -> str:
        """Tables and limits as an administrator is shown them, JSON."""
        config = self.broker_config
        return fastjson.dumps(
            {
                "runtimeTable": {group: acc.to_json() for group, acc in self.cg_cold_threshold_map_runtime.items()},
                "configTable": self.cg_cold_threshold_map_config,
                "cgColdReadThreshold": config.cg_cold_read_threshold,
                "globalColdReadThreshold": config.global_cold_read_threshold,
                "globalAcc": self.global_acc,
            }
        )


def _group_of(key: str) -> str:
    """The group of a limit as RocketMQ finds it: of one that was moved the first letter."""
    return key[:1] if key.endswith(ADAPTIVE) else key
