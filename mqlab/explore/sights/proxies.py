"""Goals of proxies and 5.x clients: handles, settling, and what proxies do on their own."""

from __future__ import annotations

from mqlab.explore.sights.sights import Sights, seen


class SightsOfProxies(Sights):
    """Proxies: receiving, settling, renewing, and clients that are gone."""

    SUBJECT = "proxies"
    SEEN = (
        seen("5x-message-is-acknowledged", "MessageSettled", "A 5.x consumer acknowledges a message.",
             settled_as="ack"),
        seen("5x-message-is-nacked", "MessageSettled", "A 5.x listener fails, and its message is to come again.",
             settled_as="nack"),
        seen("5x-message-becomes-a-dead-letter", "MessageSettled",
             "A 5.x consumer puts a message to the dead letters.", settled_as="dead letter"),
        seen("5x-message-gets-longer", "MessageSettled", "A 5.x consumer asks for more time.", settled_as="longer"),
        seen("5x-message-comes-again", "MessageSettled", "A 5.x consumer acknowledges a message at its second attempt.",
             lambda r: r.settled_as == "ack" and r.delivery_attempt > 1),
        seen("settling-is-tried-again", "SettlingFailed", "A 5.x consumer cannot settle a message, and tries again.",
             is_final=False),
        seen("handle-has-expired", "SettlingFailed", "A 5.x consumer settles a message whose handle has expired.",
             is_final=True),
        seen("handle-is-renewed", "HandleRenewed", "A proxy makes the invisible time of a message longer."),
        seen("handle-is-renewed-again", "HandleRenewed", "A proxy makes an invisible time longer for the second time.",
             lambda r: r.renew_times > 1),
        seen("handle-cannot-be-renewed", "HandleRenewFailed", "A proxy cannot make an invisible time longer."),
        seen("handle-of-a-client-that-left", "HandleGivenUp", "A proxy renews no longer what a client had that left.",
             reason="client left"),
        seen("proxy-forgets-a-silent-client", "ProxyClientLeft", "A proxy forgets a client that was silent.",
             reason="no heartbeat"),
        seen("5x-client-says-goodbye", "ProxyClientLeft", "A 5.x client says to its proxy that it goes.",
             reason="it said so"),
        seen("proxy-finds-no-broker", "RpcRefused", "A proxy answers with an error, as its broker cannot be reached."),
        seen("5x-client-waits-no-longer", "RpcCancelled", "A 5.x client cancels a call that took too long."),
        seen("proxy-leaves-a-tag-out", "PopResultFiltered", "A proxy acknowledges a message with another tag.",
             filter_result="NO_MATCH"),
        seen("proxy-forwards-a-dead-letter", "DeadLetterForwarded",
             "A proxy has a broker put a message to the dead letters."),
        seen("fifo-message-is-tried-again", "FifoAttemptPutOff", "A 5.x listener in order fails, and tries again."),
        seen("5x-cache-is-full", "ReceivePutOff", "A 5.x consumer receives nothing, since its cache is full.",
             reason="the cache is full"),
        seen("5x-receive-is-put-off", "ReceivePutOff", "A 5.x consumer waits after an error before it receives again.",
             lambda r: r.reason.startswith("[")),
        seen("5x-assignments-change", "AssignmentsScanned", "A 5.x consumer is assigned other queues than before.",
             changed=True),
        seen("5x-queue-is-taken-away", "ProcessQueueDropped", "A 5.x consumer gives a queue up.",
             reason="not assigned"),
    )  # fmt: skip
