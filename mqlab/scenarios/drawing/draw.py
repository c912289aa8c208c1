"""Drawing a world from a seed: which parts it has, and what each of them says.

Each seed first draws which kinds of clients and which settings are in use at all, so that worlds differ in character.
Every decision is a choice point of its own, and none of them is one of the world's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from mqlab.scenarios.drawing.kinds import (
    ACTS,
    ALL,
    DONE_TO,
    OWN,
    SETTINGS,
    SPECIAL_TOPICS,
    THROUGH_PROXIES,
    TOGETHER,
    TOPICS,
)
from mqlab.scenarios.drawing.parts import Part, World, is_read
from mqlab.scenarios.drawing.settings import BROKER, OF_REPLICATION
from mqlab.scenarios.drawing.values import TRUTHS, Legal, Value
from mqlab.scenarios.replication import TABLES_MS
from mqlab.sim.choices import Choices

T = TypeVar("T")

GROUPS = {
    "push": "workers", "orderly": "cooks", "broadcasting": "screens", "lite": "pollers", "schedule": "clerks",
    "pull": "readers", "replier": "repliers", "pop": "poppers", "push5": "listeners", "simple5": "auditors",
}  # fmt: skip
"""The kinds of readers, and the name of a group of each."""
BROKERS = ("broker-a", "broker-b", "broker-c")
MADE = "Refunds"
"""The topic that is made while the world plays."""
SET_UP = ("push", "orderly", "pop", "replier", "push5", "simple5")
"""The kinds of readers of whose groups an administrator may have said something before."""
ASKER_ONE_IN = 12
"""In so many seeds one somebody asks though nobody may answer."""
FIRST_ACT_MS, ACTS_MS = 2_000, 18_000
PROXY_ONE_IN = 4
"""A proxy costs as much as all the rest, so only one seed in so many may have one."""
SMALL_QUEUE_BYTES = 400
"""Room for twenty entries in a file."""
POPPING = ("pop", "push5", "simple5")
TRANSACTIONS = ("transactions", "transactions5")
ENGINES: tuple[dict[str, Value], ...] = (
    {}, {}, {"enable_pop_buffer_merge": True}, {"pop_consumer_kv_service_enable": True},
    {"pop_consumer_kv_service_enable": True, "enable_pop_buffer_merge": True},
)  # fmt: skip
"""How brokers note what is popped, where anybody pops."""
COLD_ONE_IN = 8
"""In so many seeds one brokers control who reads old data."""
COLD = ("access_message_in_memory_hot_ratio", "cg_cold_read_threshold", "cold_ctr_strategy_enable")
LITTLE_MEMORY_BYTES = 20_000
PULL_TIMEOUT = "consumer_pull_timeout_millis"
CALLS_AT_ONCE = "client_async_semaphore_value"
SMALL_FILES_ONE_IN, SYNC_FLUSH_ONE_IN = 3, 4
"""In so many seeds one all brokers have small files, and so many flush before they answer."""
HASTY: dict[str, tuple[int, ...]] = {
    "transaction_time_out": (1_000, 3_000), "transaction_check_interval": (5_000, 10_000),
}  # fmt: skip
"""What brokers say that soon ask how a transaction has ended; in every second world with transactions they do."""
RENEWING_ONE_IN, RENEWED_MS = 2, 60_000
"""In so many seeds one with proxies they renew what a client is at for so long, and not for hours."""
SHORT_LOCKS_MS = 40_000
"""So long locks of queues live in every second world in order: longer than their owners trust them, by some seconds."""
SLAVES_ONE_IN = 4
"""In so many seeds one has slaves."""
WAITS_FOR_ALL_ONE_IN = 4
"""In so many such worlds one a master waits for all its slaves."""
SETTING_ONE_IN = (0, 10, 10, 3)
"""How many of the settings a seed uses: none, few, few, many."""


def draw_world(seed: int | str) -> World:
    """The world of a seed: the same for the same seed."""
    return _Drawing(seed).world()


class _Drawing:
    def __init__(self, seed: int | str) -> None:
        self._choices = Choices(seed)
        self._one_in = self._one("settings", SETTING_ONE_IN)

    def world(self) -> World:
        """Servers first, then topics and groups, then clients."""
        brokers = BROKERS[: self._one("brokers", (1, 1, 1, 2, 2, 3))]
        proxied = self._choose("proxies", PROXY_ONE_IN) == 0
        special = {kind: name for kind, name in SPECIAL_TOPICS.items() if proxied and self._choose(f"topic {name}", 2)}
        plain = TOPICS[: self._one("topics", (1, 1, 2))]
        topics = [*plain, *special.values()]
        parts = [self._part("name-server", f"namesrv-{n + 1}") for n in range(self._one("name servers", (1, 1, 1, 2)))]
        slaves = self._slaves(brokers)
        cold = self._choose("cold data", COLD_ONE_IN) == 0
        memory = {"memory_bytes": self._own("broker", "machines", "memory_bytes")} if slaves or cold else {}
        masters = [_saying(self._part("broker", name, **memory), **self._of_all_disks()) for name in brokers]
        masters = [self._reading_cold_data(part) for part in masters] if cold else masters
        copies = Counter(slave.says["of"] for slave in slaves)
        parts += [self._copied(part, copies[part.name]) if slaves else _alone(part) for part in masters]
        parts += slaves
        for name in plain:
            made_for = {"type": self._own("topic", name, "type")} if proxied else {}
            parts.append(self._part("topic", name, queues=self._own("topic", name, "queues"), **made_for))
        for kind, name in special.items():
            parts.append(self._part("topic", name, queues=self._own("topic", name, "queues"), type=kind))
        readers = self._readers(topics, list(special.values()), proxied)
        readers = [_patient(reader) for reader in readers] if cold else readers
        if any(reader.says.get("wants", ALL) != ALL for reader in readers):
            parts = _brokers_saying(parts, enable_property_filter=True)
        engine = ENGINES[self._choose("engine of pops", len(ENGINES))]
        if any(reader.kind in POPPING for reader in readers):
            parts = _brokers_saying(parts, **engine)
        if any(reader.kind == "orderly" for reader in readers) and self._choose("short locks", 2):
            parts = _brokers_saying(parts, rebalance_lock_max_live_time=SHORT_LOCKS_MS)
        if self._choose("recalls", 2):
            parts = _brokers_saying(parts, recall_message_enable=True)
        for reader in readers:
            if reader.kind in SET_UP and (set_up := self._group(reader)).says:
                parts.append(set_up)
        for name in [f"shop-{n + 1}" for n in range(self._one("producers", (1, 1, 2)))]:
            parts.append(self._client("producer", name, topics))
        if any(reader.kind == "replier" for reader in readers) or self._choose("asker", ASKER_ONE_IN) == 0:
            parts.append(self._client("asker", "asker-1", topics))
        if special or any(reader.kind in THROUGH_PROXIES for reader in readers):
            parts += self._through_proxies(topics, special)
        if self._choose("transactions", 5) == 0:
            names = [f"bank-{n + 1}" for n in range(self._one("banks", (1, 1, 2)))]
            parts += [self._client("transactions", name, topics) for name in names]
        if any(part.kind in TRANSACTIONS for part in parts) and self._choose("asks soon", 2):
            hasty = {key: self._one(f"asks soon/{key}", values) for key, values in HASTY.items()}
            parts = _brokers_saying(parts, **hasty)
        return (*parts, *readers, *self._acts((*parts, *readers)))

    def _of_all_disks(self) -> dict[str, Value]:
        """How the brokers of a world keep their files, where it is not as each of them says."""
        says: dict[str, Value] = {}
        if self._choose("small files", SMALL_FILES_ONE_IN) == 0:
            says["mapped_file_size_commit_log"] = self._value("size of files", BROKER["mapped_file_size_commit_log"])
            if self._choose("small queues", 2):
                says["mapped_file_size_consume_queue"] = SMALL_QUEUE_BYTES
        if self._choose("flushes first", SYNC_FLUSH_ONE_IN) == 0:
            says["flush_disk_type"] = "SYNC_FLUSH"
        return says

    def _copied(self, broker: Part, slaves: int) -> Part:
        """A broker of a world with slaves, which mostly has some of the settings that only such a one minds."""
        keys = [key for key in OF_REPLICATION if self._choose(f"{broker.name}/minds {key}", 2)]
        all_copies: dict[str, Value] = {"broker_role": "SYNC_MASTER", "in_sync_replicas": 1 + slaves}
        minded = {} if self._choose(f"{broker.name}/waits for all", WAITS_FOR_ALL_ONE_IN) else all_copies
        return _saying(broker, **{**self._of_broker(broker, keys), **minded})

    def _reading_cold_data(self, broker: Part) -> Part:
        """A broker that slows groups down which read what its machine has no more room for."""
        says = {**broker.says, **self._of_broker(broker, COLD), "cold_data_flow_control_enable": True}
        return broker._replace(says={**says, "memory_bytes": says.get("memory_bytes") or LITTLE_MEMORY_BYTES})

    def _of_broker(self, broker: Part, keys: Iterable[str]) -> dict[str, Value]:
        return {key: self._value(f"{broker.name}/{key}", BROKER[key]) for key in keys}

    def _group(self, reader: Part) -> Part:
        """What an administrator has set up for a group; one of 5.x may be given its messages in order, and mostly is
        where they are sent in order.
        """
        group = self._part("group", reader.name)
        chances = 2 if reader.says["topic"] == SPECIAL_TOPICS["FIFO"] else 1
        in_order = reader.kind in THROUGH_PROXIES and self._choose(f"{reader.name}/in order", 3) < chances
        return group._replace(says={**group.says, "consume_message_orderly": True}) if in_order else group

    def _through_proxies(self, topics: Sequence[str], special: Mapping[str, str]) -> list[Part]:
        """Proxies, and who sends through them: each to the topic that is made for its messages, if there is one."""
        parts = [self._part("proxy", f"proxy-{n + 1}") for n in range(self._one("number of proxies", (1, 1, 2)))]
        if self._choose("renews", RENEWING_ONE_IN) == 0:
            parts = [_saying(part, renew_max_time_millis=RENEWED_MS) for part in parts]
        if self._choose("producer5", 2):
            shop = self._client("producer5", "shop5-1", topics)
            fit = {"in-order": special.get("FIFO"), "later": special.get("DELAY")}.get(str(shop.says["way"]))
            parts.append(shop if fit is None else shop._replace(says={**shop.says, "topic": fit}))
        if "TRANSACTION" in special:
            parts.append(self._client("transactions5", "bank5-1", [special["TRANSACTION"]]))
        return parts

    def _slaves(self, brokers: Sequence[str]) -> list[Part]:
        """In one seed of a few each broker may have slaves; in all others none has."""
        if self._choose("slaves", SLAVES_ONE_IN):
            return []
        known = self._value("slaves known", OWN["slave"]["known"])
        wanted = [(name, n) for name in brokers for n in range(self._one(f"slaves of {name}", (1, 1, 1, 2)))]
        return [self._part("slave", f"slave-{name[-1]}{n + 1}", of=name, known=known) for name, n in wanted]

    def _acts(self, parts: World) -> list[Part]:
        """Up to six acts, in order of time, of the kinds that this seed uses."""
        fit = {kind: [part.name for part in parts if part.kind in DONE_TO[kind]] for kind in DONE_TO}
        fit["delete-topic"] = [name for name in fit["delete-topic"] if not is_read(parts, name)]
        kinds = [kind for kind in ACTS if self._choose(f"act {kind}", 2) and fit.get(kind, [MADE])]
        acts: list[Part] = []
        begin_ms = FIRST_ACT_MS + (TABLES_MS if any(part.says.get("known") for part in parts) else 0)
        for number in range(self._one("acts", (0, 1, 2, 3, 6)) if kinds else 0):
            kind = self._one(f"act {number}", kinds)
            at_ms = begin_ms + self._choose(f"act {number} at", ACTS_MS)
            own = {key: self._value(f"act {number} {key}", legal) for key, legal in OWN[kind].items()}
            own.update(self._changes(f"act {number}", kind))
            acts.append(Part(kind, self._one(f"act {number} to", fit.get(kind, [MADE])), own, at_ms))
        read = [act for act in acts if act.kind == "delete-topic" and is_read((*parts, *acts), act.name)]
        return sorted((act for act in acts if act not in read), key=lambda act: act.at_ms)

    def _changes(self, point: str, kind: str) -> dict[str, Value]:
        """The settings that an act changes: up to four where it can change some."""
        known = list(SETTINGS[kind])
        keys = [self._one(f"{point} sets {n}", known) for n in range(1 + self._choose(f"{point} sets", 4)) if known]
        return {key: self._value(f"{point} {key}", SETTINGS[kind][key]) for key in dict.fromkeys(keys)}

    def _readers(self, topics: Sequence[str], special: Sequence[str], proxied: bool) -> list[Part]:
        """The groups, of which one is of 5.x where there are proxies; such a one reads topics that are made for some
        kind of message twice as often as others.
        """
        kinds = [kind for kind in GROUPS if self._choose(f"kind {kind}", 2)] or ["push"]
        if not proxied:
            kinds = [kind for kind in kinds if kind not in THROUGH_PROXIES] or ["push"]
        wanted = [self._one(f"reader {n}", kinds) for n in range(self._one("readers", (1, 2, 2, 3)))]
        if proxied and not any(kind in THROUGH_PROXIES for kind in wanted):
            wanted[0] = self._one("reader of 5.x", [kind for kind in GROUPS if kind in THROUGH_PROXIES])
        names = [f"{GROUPS[kind]}-{wanted[:place].count(kind) + 1}" for place, kind in enumerate(wanted)]
        return [
            self._client(kind, name, [*topics, *special] if kind in THROUGH_PROXIES else topics)
            for kind, name in zip(wanted, names, strict=True)
        ]

    def _client(self, kind: str, name: str, topics: Sequence[str]) -> Part:
        """A client that says all that it may say of itself; its topic is one of the world's."""
        own = {key: self._own(kind, name, key) for key in OWN[kind]}
        part = self._part(kind, name, **{**own, "topic": self._one(f"{name}/topic", topics)})
        if own.get("runs") != TOGETHER:
            return part
        # The held pulls of all groups are calls of one client.
        return part._replace(says={key: value for key, value in part.says.items() if key != CALLS_AT_ONCE})

    def _part(self, kind: str, name: str, **own: Value) -> Part:
        """A part with some of the settings that this seed uses."""
        drawn: dict[str, Value] = {}
        for key, legal in SETTINGS[kind].items():
            if self._uses(kind, key) and self._choose(f"{name}/sets {key}", 2):
                drawn[key] = self._value(f"{name}/{key}", legal)
        return Part(kind, name, {**own, **drawn})

    def _uses(self, kind: str, key: str) -> bool:
        return bool(self._one_in) and self._choose(f"uses {kind} {key}", self._one_in) == 0

    def _own(self, kind: str, name: str, key: str) -> Value:
        return self._value(f"{name}/{key}", OWN[kind][key])

    def _value(self, point: str, legal: Legal) -> Value:
        drawn: Sequence[int | str] = legal.drawn
        value = self._one(point, drawn)
        return TRUTHS.get(value, value) if isinstance(value, str) else value

    def _choose(self, point: str, n: int) -> int:
        return self._choices.choose(f"drawn/{point}", n)

    def _one(self, point: str, among: Sequence[T]) -> T:
        return among[self._choose(point, len(among))]


def _alone(broker: Part) -> Part:
    """The broker without what only one with slaves minds."""
    return broker._replace(says={key: value for key, value in broker.says.items() if key not in OF_REPLICATION})


def _saying(server: Part, **more: Value) -> Part:
    """A broker or a proxy, with settings that all of a world have or none."""
    return server._replace(says={**server.says, **more})


def _brokers_saying(parts: Iterable[Part], **more: Value) -> list[Part]:
    """The parts, with settings that all brokers of a world have or none."""
    return [_saying(part, **more) if part.kind == "broker" else part for part in parts]


def _patient(reader: Part) -> Part:
    """A reader that waits for an answer as long as brokers may hold it back that control who reads old data."""
    return reader._replace(says={key: value for key, value in reader.says.items() if key != PULL_TIMEOUT})
