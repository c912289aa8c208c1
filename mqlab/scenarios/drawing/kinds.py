"""The kinds of lines that a drawn world has, and what each of them takes, beside its name."""

from __future__ import annotations

from mqlab.scenarios.drawing import settings
from mqlab.scenarios.drawing.values import SWITCH, Legal, Name, number, words

TOPICS = ("Orders", "Payments")

ORDINARY = "NORMAL"
"""The kind of topic that a topic is unless it says otherwise."""
SPECIAL_TOPICS = {"TRANSACTION": "Transfers", "FIFO": "Steps", "DELAY": "Reminders"}
"""Topics that are there only for who sends such messages through proxies, which refuse all others."""
ALL = "all"
EVERYTHING = "everything"
ABOUT_BROKERS = ("topics", "groups", "offsets", "settings", "clients", "messages", "pops")
ABOUT_NAME_SERVERS = ("routes", "keys", "writing")
CONDITIONS = {
    "few": "place < 8",
    "some": "place BETWEEN 3 AND 14 OR kind = 'gift'",
    "gifts": "kind IN ('gift', 'toy') AND NOT (place = 4)",
    "ordinary": "kind IS NULL",
    "ends": "place NOT BETWEEN 6 AND 12",
    "late": "NOT (place < 10 OR kind = 'toy')",
    "others": "kind NOT IN ('gift') AND place > -1",
    "plain": "NOT (kind IN ('toy')) OR place IS NULL",
    "dear": "worth > -3000000000 OR kind = 'toy'",
    "cheap": "worth NOT BETWEEN 1.5 AND 2700000000",
    "edges": "place <= 2 OR place >= 18 OR place <> 9 AND kind = 'gift'",
}
"""What a group may want of a topic by a condition (SQL92). Each message of a `producer` line has its `place` in the
load, one in four is a `gift` and one in four a `toy`; a gift has its `worth`, up to some thousand millions.
"""
READING: dict[str, Legal] = {
    "topic": Name(TOPICS), "tags": Name(("*", "paid", "paid||late")),
    "wants": words(*(ALL for _ in CONDITIONS), *CONDITIONS),
}  # fmt: skip
"""What every group says: the topic that it reads, and which tags of it, or what it wants by a condition."""
LISTENING: dict[str, Legal] = {
    **READING,
    "members": number(1, 16, 1, 2, 3),
    "moves": SWITCH,
    "refuse_one_in": number(0, 1_000, 0, 5, 20),
    "slow_ms": number(1, 60_000, 20, 500, 3_000),
}
"""A listener wants one message in so many again (0: none), and takes up to `slow_ms` for one in forty, or for one in
four where that is 500 to 3,000 ms. With `moves` all members but the first come and go."""
TOGETHER = "together"
RUNNING: dict[str, Legal] = {"runs": words("alone", TOGETHER, TOGETHER)}
"""Whether the members of a group have processes of their own, or share them, and one client instance in each, with
those of all other groups of which the same is said.
"""
FAILING = ("later", "later", "later", "soon", "raises", "none", "partly")
"""What a listener does that wants a message again: it says so, or when, fails, returns nothing, or says how many of a
batch went well."""
POLLING: dict[str, Legal] = {**READING, "members": number(1, 16, 1, 2), "moves": SWITCH}
SHARED: dict[str, Legal] = {
    "shares": words("AVG", "AVG", "AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY"),
}
"""How the members of a group share its queues, by the names of RocketMQ's strategies."""

OWN: dict[str, dict[str, Legal]] = {
    "name-server": {},
    "broker": {"memory_bytes": number(0, 1 << 50, 0, 20_000, 100_000)},
    "slave": {"of": Name(("broker-a",)), "known": SWITCH},
    "topic": {
        "queues": number(1, 64, 1, 2, 4),
        "type": words(ORDINARY, ORDINARY, ORDINARY, "MIXED", "UNSPECIFIED", *SPECIAL_TOPICS),
    },
    "group": {},
    "producer": {
        "topic": Name(TOPICS),
        "way": words("sync", "async", "one-way", "batches", "batches-async"),
        "to": words("any", "any", "any", "queue", "selector"),
        "messages": number(1, 100_000, 40, 100, 200),
        "every_ms": number(0, 3_600_000, 20, 100, 300),
        "size": number(30, 4 * 1024 * 1024, 30, 100, 1_000),
        "delay_level": number(0, 18, 0, 0, 0, 1, 2),
        "timer_ms": number(0, 3_600_000, 0, 0, 0, 1_500, 6_000),
        "timer_as": words("delay-ms", "delay-s", "deliver-at"),
        "recall_one_in": number(0, 1_000, 0, 3),
    },
    "asker": {
        "topic": Name(TOPICS), "messages": number(1, 100_000, 5, 20), "every_ms": number(0, 3_600_000, 200, 1_000),
        "size": number(30, 4 * 1024 * 1024, 30, 100), "timeout_ms": number(1, 3_600_000, 500, 3_000, 10_000),
        "to": words("any", "any", "queue", "selector"),
    },
    "push": {**LISTENING, **SHARED, **RUNNING, "fails": words(*FAILING, "by-hand")},
    "replier": {key: legal for key, legal in LISTENING.items() if key not in ("tags", "wants")},
    "orderly": {
        **LISTENING, **SHARED, **RUNNING, "fails": words("later", "raises"),
        "commits": words("auto", "auto", "by-hand"),
    },
    "broadcasting": {**LISTENING, **RUNNING, "fails": words(*FAILING)},
    "pop": {**LISTENING, "fails": words(*FAILING), "share_num": number(0, 100, 0, 0, 1)},
    "transactions": {
        "topic": Name(TOPICS),
        "messages": number(1, 100_000, 8, 20, 40),
        "every_ms": number(0, 3_600_000, 200, 1_000),
        "size": number(30, 4 * 1024 * 1024, 30, 100),
        "debit_ms": number(0, 60_000, 10, 150, 3_000),
        "immune_s": number(0, 3_600, 0, 0, 2, 18),
        "at_once": SWITCH,
    },
    "lite": {
        **POLLING, **SHARED, "way": words("subscribe", "subscribe", "assign"),
        "commits": words("auto", "auto", "all", "queues", "offsets", "written"),
    },
    "pull": {
        **POLLING, **SHARED, "way": words("at-once", "held", "at-once-async", "held-async"),
        "refuse_one_in": number(0, 1_000, 0, 0, 5), "batch": number(1, 32, 1, 4, 32),
        "pause_ms": number(1, 3_600_000, 500, 2_000),
    },
    "schedule": {
        "topic": Name(TOPICS), "members": number(1, 16, 1, 2), "moves": SWITCH,
        "next_delay_ms": number(1, 3_600_000, 200, 1_000),
    },
    "proxy": {},
    "producer5": {
        "topic": Name(TOPICS),
        "messages": number(1, 100_000, 10, 20),
        "every_ms": number(0, 3_600_000, 20, 200, 500),
        "size": number(30, 4 * 1024 * 1024, 30, 100),
        "way": words("plain", "plain", "in-order", "later"),
        "timer_ms": number(0, 3_600_000, 1_500, 6_000),
        "recall_one_in": number(0, 1_000, 0, 3),
    },
    "transactions5": {
        "topic": Name((SPECIAL_TOPICS["TRANSACTION"],)),
        "messages": number(1, 100_000, 4, 8, 16),
        "every_ms": number(0, 3_600_000, 200, 1_000),
        "size": number(30, 4 * 1024 * 1024, 30, 100),
        "debit_ms": number(0, 60_000, 10, 150, 3_000),
        "at_once": SWITCH,
    },
    "push5": {
        **POLLING, "refuse_one_in": number(0, 1_000, 0, 0, 5, 20),
        "slow_ms": number(1, 3_600_000, 20, 500, 3_000, 100_000),
    },
    "simple5": {
        **POLLING, "batch": number(1, 32, 1, 8), "refuse_one_in": number(0, 1_000, 0, 0, 5, 20),
        "change_one_in": number(0, 1_000, 0, 3),
    },
    "ask": {"about": words(*(EVERYTHING for _ in ABOUT_BROKERS), *ABOUT_BROKERS)},
    "ask-name-server": {"about": words(*(EVERYTHING for _ in ABOUT_NAME_SERVERS), *ABOUT_NAME_SERVERS)},
    "suspend": {"for_ms": number(1, 3_600_000, 500, 4_000, 20_000)},
    "pause": {"for_ms": number(1, 3_600_000, 500, 4_000)},
    "seek": {"to": words("begin", "middle", "end", "time")},
    "reset": {"back_ms": number(0, 3_600_000, 0, 3_000, 10_000, 3_600_000)},
    "subscribe": {"topic": Name(TOPICS)},
    "unsubscribe": {"topic": Name(TOPICS)},
    "set": {},
    "restart-broker": {"down_ms": number(1, 3_600_000, 500, 3_000)},
    "restart-slave": {"down_ms": number(1, 3_600_000, 500, 3_000)},
    "restart-server": {"down_ms": number(1, 3_600_000, 500, 3_000)},
    "restart-members": {"down_ms": number(1, 3_600_000, 100, 2_000)},
    "restart-pollers": {"down_ms": number(1, 3_600_000, 100, 2_000)},
    "restart-poppers": {"down_ms": number(1, 3_600_000, 100, 2_000)},
    "adjust": {},
    "delete-group": {"clean_offset": SWITCH},
    "scale": {"queues": number(1, 64, 1, 5, 8)},
    "delete-topic": {},
    "forget-topic": {},
    "create-topic": {"queues": number(1, 64, 1, 4)},
}  # fmt: skip
"""What a line says about a part itself, beside RocketMQ's settings."""

SETTINGS: dict[str, dict[str, Legal]] = {
    "name-server": {},
    "broker": settings.BROKER,
    "slave": settings.SLAVE,
    "topic": {},
    "group": settings.GROUP,
    "producer": settings.PRODUCER,
    "asker": settings.ASKER,
    "push": settings.PUSH,
    "replier": settings.PUSH,
    "orderly": settings.PUSH,
    "broadcasting": settings.PUSH,
    "pop": settings.POP,
    "transactions": settings.PRODUCER,
    "lite": settings.LITE,
    "pull": settings.PULL,
    "schedule": settings.PULL,
    "proxy": settings.PROXY,
    "producer5": settings.CLIENT_5,
    "transactions5": settings.CLIENT_5,
    "push5": settings.PUSH_5,
    "simple5": settings.SIMPLE_5,
    "ask": {},
    "ask-name-server": {},
    "suspend": {},
    "pause": {},
    "seek": {},
    "reset": {},
    "subscribe": {},
    "unsubscribe": {},
    "set": settings.SET_BROKER,
    "restart-broker": settings.RESTARTED_BROKER,
    "restart-slave": settings.SLAVE,
    "restart-server": {},
    "restart-members": settings.PUSH,
    "restart-pollers": settings.LITE,
    "restart-poppers": settings.POP,
    "adjust": settings.ADJUSTED,
    "delete-group": {},
    "scale": {},
    "delete-topic": {},
    "forget-topic": {},
    "create-topic": {},
}
"""What a line may set of RocketMQ's own settings."""

KINDS = tuple(OWN)
ACTS = (
    "ask", "ask-name-server", "suspend", "pause", "seek", "reset", "subscribe", "unsubscribe", "set", "restart-broker",
    "restart-slave", "restart-server", "restart-members", "restart-pollers", "restart-poppers", "adjust",
    "delete-group", "scale", "delete-topic", "forget-topic", "create-topic",
)  # fmt: skip
"""What people do while the world plays: an administrator asks a broker or a name server about something, a group of
listeners stands still for a while, one that polls rests, or goes on elsewhere, a group is set to what was stored
`back_ms` ago (0: to the end), a group reads a topic too or no more, a broker is set to something else while it runs, a
broker, a slave or the members of a group stop in good order and start again with other settings, so do a name server
and a proxy without, listeners are given other limits, a group is forgotten, with how far it came or without, a topic
gets as many queues, one that nobody reads is deleted, name servers forget one that brokers have, a topic is made."""
DONE_TO: dict[str, tuple[str, ...]] = {
    "delete-group": (
        "push", "replier", "orderly", "broadcasting", "lite", "pull", "schedule", "pop", "push5", "simple5",
    ),
    "ask": ("broker", "slave"), "ask-name-server": ("name-server",), "set": ("broker",),
    "restart-broker": ("broker",), "restart-slave": ("slave",), "restart-server": ("name-server", "proxy"),
    "restart-members": ("push", "replier", "orderly", "broadcasting"),
    "adjust": ("push", "orderly", "broadcasting"),
    "restart-pollers": ("lite",), "restart-poppers": ("pop",),
    "subscribe": ("push", "replier", "orderly", "broadcasting", "lite"),
    "unsubscribe": ("push", "replier", "orderly", "broadcasting", "lite"),
    "suspend": ("push", "replier", "orderly", "broadcasting"),
    "pause": ("lite",), "seek": ("lite",), "scale": ("topic",), "delete-topic": ("topic",), "forget-topic": ("topic",),
    "reset": ("push", "replier", "orderly", "lite", "pull", "schedule", "pop"),
}  # fmt: skip
"""The kinds of parts that an act can be done to, by the name of its line."""
THROUGH_PROXIES = ("producer5", "transactions5", "push5", "simple5")
"""The clients that need a proxy."""
ADMINISTRATOR = "administrator"
"""The machine from which brokers are asked for what people do to them."""
NEEDED = ("name-server", "broker")
"""Without one of each there is no world."""
