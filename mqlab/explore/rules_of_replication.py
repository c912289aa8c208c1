"""Rules of replication: a copy is a copy, whoever says that there is one is right, and a slave stays a slave."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from mqlab.explore.places import Place
from mqlab.explore.rule import Case, Rule
from mqlab.explore.rules_of_replies import PUSHED, PUSHED_TEXT, is_reply
from mqlab.explore.stopped_timer import TORN, TORN_TEXT
from mqlab.lab.processes import ProxyProcess
from mqlab.protocol.route import MASTER_ID
from mqlab.store import BrokerRole
from mqlab.trace.record import Record

if TYPE_CHECKING:
    from mqlab.lab.processes import BrokerProcess
    from mqlab.store.commit_log import CommitLog

FOLLOWED_US = 75_000_000
"""A slave fetches the tables when it has not done so for a minute, and looks each 3 s; the rest is for what hung."""
BROADCAST = "@broadcast"
"""How the group ends under which a broker notes where the members of a broadcasting group are."""
HOME_US = 20_000_000
"""A pull that a slave holds is answered within 15 s, and looked for each 5 s."""

SHORTER = "a master that has lost what its slave has"
SHORTER_TEXT = (
    "A master that loses power may come back with less than it had sent to its slave. The slave drops nothing, and "
    "goes on where its log ends when the master's is longer again: from there on the logs are the same, before it not. "
    "That can be in the midst of a record: a slave that is killed is recovered up to there, and copies what is behind "
    "it anew, as far as the master still has it. Until then its queues end there. One that checks offsets "
    "(offsetCheckInSlave) sends whom its master sends to it back to that end, and the master gives out again what is "
    "behind it, and sends the reader to the slave again, without end."
)

PREFERS = "a proxy that prefers a master"
PREFERS_TEXT = (
    "A proxy asks the master of a broker for messages, and where its route names none the slave with the smallest id "
    "(getMasterAddrPrefer): a slave may be asked for a pop. It stores no check point, and the acknowledgements, which "
    "go to the master later, belong to none."
)


class CopiesAreTheSame(Rule):
    """In the end a slave's commit log is its master's, byte for byte and up to the same end."""

    EXCEPTIONS: ClassVar[dict[str, str]] = {SHORTER: SHORTER_TEXT, TORN: TORN_TEXT}

    def at_end(self) -> None:
        """Compare the logs of all pairs."""
        for slave in self.case.lab.brokers:
            master = self.case.ledger.names.broker(self.case.ledger.names.original_of(slave.name))
            if slave.is_slave and master is not None and master is not slave:
                self._compare(master, slave)

    def _compare(self, master: BrokerProcess, slave: BrokerProcess) -> None:
        self.judged += 1
        original, copy = master.store.commit_log, slave.store.commit_log
        reason = ""
        if copy.mapped_file_queue.mapped_files and copy.max_offset != original.max_offset:
            reason = f"the log of {slave.name} ends at {copy.max_offset}, its master's at {original.max_offset}"
        else:
            at = _first_difference(original, copy)
            if at is not None:
                reason = f"the log of {slave.name} is not its master's in the file that begins at {at}"
        lost_power = self.case.ledger.processes.power_lost_us
        if reason and master.name in lost_power:
            self.excuse(SHORTER)
        elif reason and slave.name in lost_power:
            # Recovery looks at the body of a record, and not at what stands around it.
            self.excuse(TORN)
        elif reason:
            self.found(None, reason)


def _first_difference(original: CommitLog, copy: CommitLog) -> int | None:
    """Where the first file of a copy begins that is another one than the original; None if there is none."""
    for file in copy.mapped_file_queue.mapped_files:
        begin, size = file.file_from_offset, file.wrote_position
        if begin >= original.min_offset and original.mapped_file_queue.read(begin, size) != file.file.read(0, size):
            return begin
    return None


class _CopyRule(Rule):
    """A rule that knows what slaves have."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._ends: dict[str, int] = {}
        """Slave -> how far its log has ever come."""

    def on_event(self, record: Record) -> None:
        """Note what a slave was seen to append, or judge what is said of it."""
        if record.kind == "ReplicaDataAppended":
            end = record.commit_log_offset + record.body_bytes
            if self.case.is_live:
                end = min(end, self.case.broker(record.node).store.max_phy_offset)
            self._ends[record.node] = max(end, self._ends.get(record.node, 0))
        else:
            self._judge(record)

    def _judge(self, record: Record) -> None:
        raise NotImplementedError


class SafeIsCopied(_CopyRule):
    """A synchronous master answers SEND_OK only when as many brokers have the message as it is to wait for."""

    kinds = ("ReplicaDataAppended", "SendSucceeded")
    EXCEPTIONS: ClassVar[dict[str, str]] = {PUSHED: PUSHED_TEXT}

    def _judge(self, record: Record) -> None:
        """Count the copies of what is acknowledged."""
        names = self.case.ledger.names
        place = Place(names.broker_of(record.broker_name), record.topic, record.queue_id, record.queue_offset)
        kept, wanted = self.case.ledger.stores.stored.get(place), self._wanted(place.broker)
        if record.send_status != "SEND_OK" or wanted <= 1 or kept is None or kept.unique_key != record.msg_id:
            return
        self.judged += 1
        end = kept.commit_log_offset + kept.size
        copies = 1 + sum(names.original_of(slave) == place.broker and has >= end for slave, has in self._ends.items())
        if copies < wanted and is_reply(record.row):
            self.excuse(PUSHED)
        elif copies < wanted:
            self.found(record.row, f"message {record.msg_id} was acknowledged with {copies} of {wanted} copies")

    def _wanted(self, master: str) -> int:
        """How many copies a producer of this broker waits for, the master's own among them."""
        broker = self.case.ledger.names.broker(master)
        if broker is None or broker.controller is None:
            return 1
        config = broker.controller.message_store_config
        return config.in_sync_replicas if config.broker_role is BrokerRole.SYNC_MASTER else 1


class ReportsAreTrue(_CopyRule):
    """A slave reports no more of the log than it has."""

    kinds = ("ReplicaDataAppended", "CommitLogFileCreated", "ReplicaAcked")

    def _judge(self, record: Record) -> None:
        """Compare a report with what the slave was seen to append, or with where its first file begins."""
        if record.kind == "CommitLogFileCreated":
            self._ends[record.node] = max(record.commit_log_offset, self._ends.get(record.node, 0))
            return
        self.judged += 1
        slave = self.case.lab.world.network.node_at(record.remote)
        has = self._ends.get(slave.name, 0) if slave is not None else 0
        if record.ack_offset > has:
            self.found(record.row, f"a slave that never had more than {has} bytes reports {record.ack_offset}")


class SlavesFollow(Rule):
    """A slave knows what its master knew a minute ago: topics, groups, and how far each group has come.

    What is read in broadcasting each broker notes by itself, also a slave that is read from (BroadcastOffsetManager).
    """

    kinds = (
        "TopicCreated", "SubscriptionGroupCreated", "SubscriptionGroupDeleted", "OffsetCommitted", "BrokerStarted",
        "BrokerRegistered",
    )  # fmt: skip

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._masters_us: dict[str, int] = {}
        """Broker name -> when a name server last got to know its master, again or for the first time."""
        self._told_us: dict[str, int] = {}
        """Broker name -> when a slave that reported itself was first told of its master after that."""
        self._since_us: dict[tuple[str, str], int] = {}
        """(broker, topic or group) -> when it was made."""
        self._commits: dict[tuple[str, str, str, int], list[tuple[int, int]]] = {}
        """(broker, group, topic, queue id) -> the times and offsets of commits."""
        self._started_us: dict[str, int] = {}

    def on_event(self, record: Record) -> None:
        """Note what a broker gets to know, and when."""
        if record.kind == "BrokerStarted":
            self._started_us[record.node] = record.ts_us
            # What it had not written it does not know any more.
            self._commits = {key: commits for key, commits in self._commits.items() if key[0] != record.node}
        elif record.kind == "BrokerRegistered":
            self._registered(record)
        elif record.kind == "SubscriptionGroupDeleted":
            gone = (record.node, record.group)
            self._commits = {key: commits for key, commits in self._commits.items() if key[:2] != gone}
        elif record.kind == "TopicCreated":
            self._since_us[record.node, record.topic] = record.ts_us
        elif record.kind == "SubscriptionGroupCreated":
            self._since_us[record.node, record.group] = record.ts_us
        else:
            key = (record.node, record.group, record.topic, record.queue_id)
            self._commits.setdefault(key, []).append((record.ts_us, record.queue_offset))

    def at_end(self) -> None:
        """Compare what slaves know with what their masters knew, where nothing went wrong since."""
        now_us = self.case.lab.world.now_us
        long_ago_us = now_us - FOLLOWED_US
        if not self.case.fault_times.none_between(long_ago_us, now_us):
            return
        for slave in self.case.lab.brokers:
            master = self.case.ledger.names.broker(self.case.ledger.names.original_of(slave.name))
            if master is None or not slave.is_slave or master is slave:
                continue
            if self._ran_since(master) and self._ran_since(slave) and self._knew_its_master(slave, long_ago_us):
                self._compare(master, slave, long_ago_us)

    def _registered(self, record: Record) -> None:
        if record.broker_id == MASTER_ID:
            if record.first:
                self._masters_us[record.broker_name] = record.ts_us
        elif self._told_us.get(record.broker_addr, -1) < self._masters_us.get(record.broker_name, -1):
            self._told_us[record.broker_addr] = record.ts_us

    def _knew_its_master(self, slave: BrokerProcess, since_us: int) -> bool:
        """Has the slave known all this time whom to ask? From a name server that was started again and heard of the
        slave before its master the slave learns, every 30 s, that it has none; when it is to fetch the tables then, it
        asks nobody, and the next time is a minute later.
        """
        broker = slave.running()
        told_us = self._told_us.get(broker.broker_addr, -1)
        return self._masters_us.get(broker.broker_config.broker_name, since_us) <= told_us < since_us

    def _ran_since(self, broker: BrokerProcess) -> bool:
        now_us = self.case.lab.world.now_us
        return broker.is_up() and now_us - self._started_us.get(broker.name, now_us) > FOLLOWED_US

    def _compare(self, master: BrokerProcess, slave: BrokerProcess, long_ago_us: int) -> None:
        original, copy = master.running(), slave.running()
        tables = (
            ("topic", original.topic_config_manager.topic_config_table, copy.topic_config_manager.topic_config_table),
            (
                "group",
                original.subscription_group_manager.subscription_group_table,
                copy.subscription_group_manager.subscription_group_table,
            ),
        )
        for what, known, followed in tables:
            self.judged += len(known)
            for name in known.keys() - followed.keys():
                if self._since_us.get((master.name, name), 0) < long_ago_us:
                    self.found(None, f"{slave.name} does not know the {what} {name} of its master")
        for (broker, group, topic, queue_id), commits in self._commits.items():
            old = [offset for ts_us, offset in commits if ts_us < long_ago_us]
            if broker != master.name or not old or group.endswith(BROADCAST):
                continue
            self.judged += 1
            least = min(offset for _, offset in commits[len(old) - 1 :])
            offset = copy.consumer_offset_manager.query_offset(group, topic, queue_id)
            if offset < least:
                at = f"{topic} queue {queue_id}"
                self.found(None, f"{group} was at {least} in {at} a minute ago, and is at {offset} for {slave.name}")
            most = max(offset for _, offset in commits)
            if offset > most:
                at = f"{topic} queue {queue_id}"
                self.found(None, f"{group} has come to {most} in {at}, and is at {offset} for {slave.name}")


class SlavesOnlyGive(Rule):
    """A slave stores nothing of its own, and nobody who looks for a master asks it for a lock or a pop."""

    kinds = ("MessageStored", "QueueLocked", "PopReceived")
    EXCEPTIONS: ClassVar[dict[str, str]] = {PREFERS: PREFERS_TEXT}

    def on_event(self, record: Record) -> None:
        """Look who does it, where there are slaves."""
        self.judged += any(broker.is_slave for broker in self.case.lab.brokers)
        if self.case.ledger.names.original_of(record.node) == record.node:
            return
        if record.kind == "PopReceived" and self._is_proxy(record.remote):
            self.excuse(PREFERS)
        else:
            at = f"{record.topic} queue {record.queue_id}"
            self.found(record.row, f"{record.node} is a slave, and has a {record.kind} of {at}")

    def _is_proxy(self, address: str) -> bool:
        node = self.case.lab.world.network.node_at(address)
        return node is not None and isinstance(self.case.lab.processes.get(node.name), ProxyProcess)


class ReadersComeHome(Rule):
    """In the end, with a master that is there, nobody reads from its slave any more."""

    kinds = ("PullReceived", "BrokerStarted", "BrokerRegistered")
    EXCEPTIONS: ClassVar[dict[str, str]] = {SHORTER: SHORTER_TEXT}

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self._pulls: dict[str, Record] = {}
        """Slave -> the last pull that came there."""
        self._there_us = 0
        """When a broker was last started, or a name server last got to know a master, also again."""

    def on_event(self, record: Record) -> None:
        """Note who is asked, and since when there is a master to ask."""
        if record.kind == "BrokerStarted":
            self._there_us = record.ts_us
        elif record.kind == "BrokerRegistered":
            if record.broker_id == MASTER_ID and record.first:
                self._there_us = record.ts_us
        elif self.case.ledger.names.original_of(record.node) != record.node:
            self._pulls[record.node] = record

    def at_end(self) -> None:
        """Look when a slave was last asked."""
        now_us = self.case.lab.world.now_us
        quiet_since_us = now_us - FOLLOWED_US
        if not self.case.fault_times.none_between(quiet_since_us, now_us) or self._there_us > quiet_since_us:
            return
        self.judged += len(self._pulls)
        for slave, pull in self._pulls.items():
            if now_us - pull.ts_us >= HOME_US:
                continue
            if self.case.sends_readers_back(self.case.broker(slave)):
                self.excuse(SHORTER)
            else:
                self.found(pull.row, f"{pull.group} still reads from {slave}")
