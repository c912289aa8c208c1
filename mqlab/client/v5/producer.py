"""The producer of 5.x applications."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from mqlab.client.client_config import checked_settings
from mqlab.client.v5.client_configuration import ProducerConfiguration
from mqlab.client.v5.client_impl import MASTER_BROKER_ID, ClientImpl, Startable, is_writable
from mqlab.client.v5.errors import ClientException, check_status
from mqlab.client.v5.message import Message, MessageIdCodec, check_body
from mqlab.client.v5.retry import PRODUCER_POLICY, next_attempt_delay_ms
from mqlab.errors import LearnerError
from mqlab.protocol.v2 import service
from mqlab.protocol.v2.definition import (
    ClientType,
    Code,
    Endpoints,
    MessageQueue,
    MessageType,
    Publishing,
    Resource,
    Settings,
)
from mqlab.protocol.v2.protobuf import Duration, name_of
from mqlab.sim import public_call
from mqlab.trace.events.client import SendAttempted, SendAttemptFailed, SendFailed, SendSucceeded

if TYPE_CHECKING:
    from mqlab.client.v5.transaction import OrphanedTransactions, Transaction, TransactionChecker
    from mqlab.sim import Node

MAX_BODY_SIZE_BYTES = 4 * 1024 * 1024
SERVER_CHOOSES = -1
"""The queue in events of sending: the proxy chooses it, and does not say which."""


class SendReceipt(NamedTuple):
    """A message was stored (org.apache.rocketmq.client.apis.producer.SendReceipt)."""

    message_id: str
    offset: int
    recall_handle: str
    """By which a message with a time of delivery can be called back; empty for others."""
    transaction_id: str = ""
    endpoints: Endpoints | None = None
    """The proxy that has taken the message: it alone knows at once how to end its transaction."""


class RecallReceipt(NamedTuple):
    """A message was taken back, if it was still there (org.apache.rocketmq.client.apis.producer.RecallReceipt)."""

    message_id: str


class Producer(Startable, ProducerConfiguration):
    """Sends messages through proxies (org.apache.rocketmq.client.apis.producer.Producer).

        producer = lab.producer_v5()
        await producer.start()
        receipt = await producer.send(Message("Orders", "hello", tag="paid"))

    Whoever sends within transactions should name their `topics` from the start: a broker asks only producers of which
    it was told, and a topic that is first sent to later is told of with the next settings, up to 300 s later.

    One message at a time, as in RocketMQ, whose client sends lists of one. Differs from RocketMQ: the queue by which a
    message group chooses its proxy is that of Python's client (Java hashes otherwise, and the proxy chooses the queue
    anyway); no lite topics and priorities.
    """

    call_name = "producer"
    speaks_to_proxies = True
    impl: ProducerImpl

    def __init__(self, node: Node, producer_group: str = "", **settings: Any) -> None:
        """A 5.x producer has no group: `producer_group` is there for the callers that make all kinds of clients."""
        super().__init__(**checked_settings(ProducerConfiguration, settings))
        self.node = node
        self.transaction_checker: TransactionChecker | None = None
        self.begin_life()

    def begin_life(self) -> None:
        """Make what dies with the process from what this producer was given: at first, and at each restart."""
        self.impl = ProducerImpl(self.node, self)

    def set_transaction_checker(self, checker: TransactionChecker) -> None:
        """Let this function say what became of a transaction whose end no broker has heard of.

        It gets the message, and returns a TransactionResolution; plain or `async`. It may be asked about a transaction
        of any producer of its topic, also of one that has died.
        """
        from mqlab.client.v5.transaction import checked_checker

        if self.impl.is_running:
            raise LearnerError(
                "the producer runs already, and keeps the checker with which it was started",
                "make a new producer: await producer.shutdown(), then lab.producer_v5(...)",
            )
        self.transaction_checker = checked_checker(checker)

    @public_call
    async def shutdown(self) -> None:
        """Tell the proxy that the producer ends, and close its connections."""
        await self.impl.shutdown()

    def begin_transaction(self) -> Transaction:
        """Begin a transaction; ClientException for a producer that has no checker or does not run.

        Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.beginTransaction.
        """
        from mqlab.client.v5.transaction import Transaction

        if self.transaction_checker is None:
            raise ClientException(
                "Transaction checker should not be null. What to do: producer.set_transaction_checker(checker) before "
                "the start, with a function of a message that returns a TransactionResolution."
            )
        self.impl.check_running()
        return Transaction(self.impl)

    @public_call
    async def send(self, message: Message, transaction: Transaction | None = None) -> SendReceipt:
        """Send a message and wait until a broker has it; ClientException after the last of (usually three) attempts.

        With a transaction it is stored as a half message, which nobody gets before the commit.

        Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.send.
        """
        if not isinstance(message, Message):
            raise LearnerError(
                f"{type(message).__name__} is no message of 5.x", "from mqlab.client.v5 import Message"
            )
        if transaction is None:
            return await self.impl.send(message)
        transaction.try_add_message(message)
        receipt = await self.impl.send(message, MessageType.TRANSACTION)
        transaction.try_add_receipt(message, receipt)
        return receipt

    @public_call
    async def recall_message(self, topic: str, recall_handle: str) -> RecallReceipt:
        """Take back a message that waits for its time, by the handle in its receipt; ClientException when refused.

        The broker answers before it has looked for the message: one that is gone already counts as taken back.

        Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.recallMessage0.
        """
        return await self.impl.recall_message(topic, recall_handle)

    def __repr__(self) -> str:
        return f"<Producer on {self.node.name}: {self.impl.service_state}>"


class ProducerImpl(ClientImpl):
    """What a producer does (org.apache.rocketmq.client.java.impl.producer.ProducerImpl)."""

    role = "producer"
    client_type = ClientType.PRODUCER

    def __init__(self, node: Node, config: Producer) -> None:
        super().__init__(node, config, "")
        self._producer = config
        self._orphaned: OrphanedTransactions | None = None
        self._topics = [topic.strip() for topic in config.topics.split(",") if topic.strip()]
        self._index: dict[str, int] = {}
        """Topic -> how many candidates were asked for, from a start that is drawn."""
        self._policy = PRODUCER_POLICY
        self._publishing = Publishing(max_body_size=MAX_BODY_SIZE_BYTES, validate_message_type=True)

    def topics(self) -> list[str]:
        """The topics that it was told of, and those that it has sent to."""
        return list(self._topics)

    def settings(self) -> Settings:
        """What proxies are told."""
        topics = tuple(Resource(name=topic) for topic in self._topics)
        return Settings(
            client_type=self.client_type,
            access_point=self.endpoints,
            request_timeout=Duration(self.config.request_timeout),
            publishing=self._publishing._replace(topics=topics),
            backoff_policy=self._policy,
        )

    def take_settings(self, settings: Settings) -> None:
        """What a proxy has decided: number of attempts, largest body, whether kinds of messages are checked."""
        if settings.publishing is not None:
            self._publishing = settings.publishing
        if settings.backoff_policy is not None:
            self._policy = settings.backoff_policy

    def recover_orphaned_transaction(
        self, endpoints: Endpoints, command: service.RecoverOrphanedTransactionCommand
    ) -> None:
        """A proxy asks what became of a transaction; a producer without a checker does not answer."""
        checker = self._producer.transaction_checker
        if checker is None:
            return
        if self._orphaned is None:
            from mqlab.client.v5.transaction import OrphanedTransactions

            self._orphaned = OrphanedTransactions(self, checker)
        self._orphaned.ask(endpoints, command)

    async def recall_message(self, topic: str, recall_handle: str) -> RecallReceipt:
        """Ask the proxies that the client was given, whoever took the message.

        Java: org.apache.rocketmq.client.java.impl.producer.ProducerImpl.recallMessage0.
        """
        self.check_running()
        if not recall_handle:
            raise ClientException("recall handle is invalid")
        request = service.RecallMessageRequest(Resource(name=topic), recall_handle)
        response = await self.call(self.endpoints, service.RECALL_MESSAGE, request)
        check_status(response.status)
        return RecallReceipt(response.message_id)

    async def send(self, message: Message, kind: MessageType | None = None) -> SendReceipt:
        """Send a message, as one of this kind or of its own, to its candidates, one after the other.

        A failed attempt isolates its proxy until the proxy's next heartbeat, and is repeated at once; only
        TOO_MANY_REQUESTS makes the producer wait.
        """
        self.check_running()
        kind = kind or message.message_type
        check_body(message, self._publishing.max_body_size)
        message_id = MessageIdCodec.of(self.node).next_message_id()
        if message.topic not in self._topics:
            self._topics.append(message.topic)
        begin_us = self.node.now_us()
        attempt = 0
        try:
            candidates = self._candidates(message, kind, await self.route(message.topic))
            while True:
                attempt += 1
                queue = candidates[(attempt - 1) % len(candidates)]
                try:
                    return await self._send_once(message, kind, message_id, queue)
                except ClientException as error:
                    self._attempt_failed(message, message_id, queue, attempt, error)
                    if attempt >= self._policy.max_attempts or (error.code == 0 and not self.is_running):
                        raise
                    if error.is_too_many_requests:
                        await self.node.sleep(next_attempt_delay_ms(self._policy, attempt + 1))
        except ClientException as error:
            if self.node.hooks.on:
                cost_us = self.node.now_us() - begin_us
                self.node.hooks.emit(SendFailed(message.topic, message_id, attempt, cost_us, str(error)))
            raise

    def _candidates(
        self, message: Message, kind: MessageType, queues: tuple[MessageQueue, ...]
    ) -> list[MessageQueue]:
        """The queues to try: of each broker one, those of isolated proxies only if there is nothing else.

        Java: org.apache.rocketmq.client.java.impl.producer.PublishingLoadBalancer.
        """
        writable = [queue for queue in queues if is_writable(queue) and queue.broker.id == MASTER_BROKER_ID]
        if not writable:
            raise ClientException(f"No writable message queue found, topic={message.topic}")
        if self._publishing.validate_message_type and kind not in writable[0].accept_message_types:
            accepted = ", ".join(name_of(kind) for kind in writable[0].accept_message_types)
            raise ClientException(
                f"Current message type not match with topic accept message types, topic={message.topic}, "
                f"actualMessageType={kind.name}, acceptMessageTypes=[{accepted}]. What to do: "
                f"create the topic with attributes={{'+message.type': '{kind.name}'}}."
            )
        if message.message_group is not None:
            digest = sha256(message.message_group.encode()).digest()
            return [writable[int.from_bytes(digest, "big") % len(writable)]]
        index = self._index.get(message.topic)
        if index is None:
            index = self.node.choose(f"first-candidate/{message.topic}", len(writable))
        self._index[message.topic] = index + 1
        turned = [writable[(index + place) % len(writable)] for place in range(len(writable))]
        free = [queue for queue in turned if queue.broker.endpoints not in self.isolated] or turned
        of_each_broker = {queue.broker.name: queue for queue in reversed(free)}
        return [queue for queue in free if of_each_broker[queue.broker.name] is queue][: self._policy.max_attempts]

    async def _send_once(
        self, message: Message, kind: MessageType, message_id: str, queue: MessageQueue
    ) -> SendReceipt:
        hooks, budget_ms = self.node.hooks, self.config.request_timeout
        if hooks.on:
            hooks.emit(
                SendAttempted(message.topic, "", SERVER_CHOOSES, message_id, "SYNC", budget_ms, len(message.body))
            )
        request = service.SendMessageRequest((message.to_protobuf(message_id, kind, self.node),))
        endpoints = queue.broker.endpoints
        response = await self.call(endpoints, service.SEND_MESSAGE, request)
        check_status(response.status)
        if not response.entries:
            raise ClientException("the answer says that all is well, and has no entry for the message")
        entry = response.entries[0]
        check_status(entry.status)
        if hooks.on:
            hooks.emit(SendSucceeded(message.topic, "", SERVER_CHOOSES, entry.offset, entry.message_id, Code.OK.name))
        return SendReceipt(entry.message_id, entry.offset, entry.recall_handle, entry.transaction_id, endpoints)

    def _attempt_failed(
        self, message: Message, message_id: str, queue: MessageQueue, attempt: int, error: ClientException
    ) -> None:
        self.isolated[queue.broker.endpoints] = None
        if self.node.hooks.on:
            retriable = attempt < self._policy.max_attempts
            self.node.hooks.emit(
                SendAttemptFailed(message.topic, "", SERVER_CHOOSES, message_id, attempt, str(error), retriable)
            )
