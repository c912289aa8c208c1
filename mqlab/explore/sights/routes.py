"""Goals of routes and connections: what clients believe of brokers, and what ends between them."""

from __future__ import annotations

from typing import ClassVar

from mqlab.explore.rule import Case
from mqlab.explore.sights.sights import Sights, seen
from mqlab.protocol.codes import ResponseCode
from mqlab.trace.record import Record

LONG_US = 1_000_000


class SightsOfRoutes(Sights):
    """Routes: brokers that come and go, and what name servers and clients know of it."""

    SUBJECT = "routes"
    SEEN = (
        seen("broker-says-that-it-goes", "BrokerUnregistered", "A broker says to a name server that it goes.",
             reason="asked"),
        seen("connection-of-a-broker-ends", "BrokerUnregistered",
             "A name server forgets a broker, since its connection has ended.", reason="channel closed"),
        seen("silent-broker-expires", "BrokerUnregistered",
             "A name server forgets a broker that was silent for two minutes.", reason="expired"),
        seen("broker-cannot-report", "RegistrationFailed", "A name server does not take the report of a broker."),
        seen("route-is-missing", "RouteMissing", "A client asks for a route and gets none."),
        seen("client-forgets-a-broker", "BrokerForgotten", "A client forgets a broker that is in no route any more."),
        seen("client-asks-another-name-server", "NameServerChosen", "A client turns to another name server.",
             lambda r: r.previous not in ("", r.chosen)),
        seen("route-loses-a-topic", "TopicRouteRemoved", "A broker has no queues of a topic any more, as routes say."),
    )  # fmt: skip
    GOALS: ClassVar[dict[str, str]] = {
        "route-names-a-dead-broker": "A client gets a new route that names a broker which does not run.",
        "broker-comes-back-into-the-routes": "A name server that had forgotten a broker hears of it again.",
        "name-servers-disagree": "A broker reports to one name server, and another one has forgotten it for a second.",
    }
    FOLLOWS = ("RouteUpdated", "BrokerUnregistered", "BrokerRegistered")

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._forgotten_us: dict[str, dict[str, int]] = {}
        """A broker's address -> name server -> when that has forgotten it."""

    def follow(self, record: Record) -> None:
        """Compare routes with the world, and name servers with each other."""
        if record.kind == "RouteUpdated":
            if self.case.is_live and any(map(self._is_down, record.broker_names.split(","))):
                self.reach("route-names-a-dead-broker", record)
            return
        forgotten_us = self._forgotten_us.setdefault(record.broker_addr, {})
        if record.kind == "BrokerUnregistered":
            forgotten_us[record.node] = record.ts_us
            return
        if forgotten_us.pop(record.node, None) is not None:
            self.reach("broker-comes-back-into-the-routes", record)
        if any(record.ts_us - us >= LONG_US for us in forgotten_us.values()):
            self.reach("name-servers-disagree", record)

    def _is_down(self, broker_name: str) -> bool:
        broker = self.case.ledger.names.broker(self.case.ledger.names.broker_of(broker_name))
        return broker is not None and not broker.is_up()


class SightsOfCalls(Sights):
    """Calls and connections: what times out, what ends, and what comes too late."""

    SUBJECT = "calls"
    SEEN = (
        seen("call-times-out", "RequestTimedOut", "A caller gives a call up, since its time is over.",
             expired_by_scan=False),
        seen("scan-ends-a-call", "RequestTimedOut", "The scan of the response table ends a call that nobody answered.",
             expired_by_scan=True),
        seen("connection-ends-under-a-call", "RequestFailed", "A connection ends before the answer to a call came."),
        seen("answer-comes-too-late", "ResponseDropped", "An answer comes that nobody waits for any more."),
        seen("idle-connection-is-closed", "ChannelIdle",
             "A connection is closed over which nothing came for two minutes."),
        seen("connection-breaks", "ConnectionBroken", "A connection breaks in the midst."),
        seen("nobody-listens", "ConnectionRefusedByHost", "Somebody connects to where nobody listens."),
        seen("request-code-is-refused", "RequestRefused", "A server does not know what to do with a request's code.",
             response_code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED),
        seen("heartbeat-does-not-get-through", "HeartbeatFailed", "A heartbeat does not get through."),
        seen("message-trace-is-lost", "TraceLost", "What a client notes of its messages cannot be sent, and is lost."),
    )  # fmt: skip


class SightsOfReplies(Sights):
    """Questions and replies: what matches, what comes too late, what never comes."""

    SUBJECT = "replies"
    SEEN = (
        seen("reply-matches", "ReplyArrived", "A reply comes to who waits for it.", matched=True),
        seen("reply-comes-too-late", "ReplyArrived", "A reply comes for which nobody waits any more.", matched=False),
        seen("reply-is-given-up", "ReplyGivenUp", "Somebody waits for a reply no longer."),
        seen("reply-is-not-pushed", "ReplyNotPushed", "A broker cannot push a reply to who waits for it."),
        seen("reply-waits-for-seconds", "ReplyArrived", "A reply matches that was waited for for a second and more.",
             lambda r: r.matched and r.waited_ms >= 1_000),
    )  # fmt: skip
