"""Consumers whose master is killed and comes back after a minute do what those of a real pair did."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import pytest

from mqlab import ConsumeConcurrentlyStatus, Message, MessageQueue
from mqlab.client import ConsumeOrderlyStatus, MessageListenerOrderly
from mqlab.errors import MQClientException, RemotingException
from mqlab.protocol import RequestCode
from mqlab.protocol import headers as h
from mqlab.protocol.group_bodies import LockBatchRequestBody, LockBatchResponseBody
from tests.broker.ha.conftest import Pair, timeline

WAYS = ["on", "off"]
CODES = {11, 14, 15, 36, 41, 361}
DEAD_MS = (36_000, 61_000)
BACK_MS = (111_000, 114_000)
"""When everybody knows that the master is dead, and when everybody knows that it is back."""

TOPICS = ("HaTopic", "OrdTopic", "FailTopic")


class Played(NamedTuple):
    """A pair that has gone through what the real one went through; times are those of the recording."""

    pair: Pair
    start_us: int
    consumed: list[tuple[float, str, int, int]]
    sent: dict[int, str]


class _Play:
    def __init__(self, read: bool) -> None:
        self.pair = p = Pair(
            timer_wheel_enable=False, slave_read_enable=read, auto_create_subscription_group=True
        )
        for topic in TOPICS:
            p.lab.create_topic(topic, 1)
        p.lab.run_for(ms=56_000)
        self.start_us = p.lab.world.now_us + 14_000_000
        self.consumed: list[tuple[float, str, int, int]] = []
        self.sent: dict[int, str] = {}

    def at(self, ms: float) -> None:
        self.pair.lab.world.run_to(max(self.pair.lab.world.now_us, self.start_us + round(ms * 1_000)))

    def until_copied(self) -> None:
        """The slave of the recording had all when its master was killed; how soon is a matter of its sender's nap."""
        master, slave = (broker.running().message_store for broker in self.pair.lab.brokers)
        self.pair.lab.run_until(lambda: slave.max_phy_offset == master.max_phy_offset, limit_ms=200)

    def note(self, client: str, message: Any) -> None:
        """A client has got a message."""
        now_ms = (self.pair.lab.world.now_us - self.start_us) / 1_000
        self.consumed.append((now_ms, client, int(message.body), message.reconsume_times))

    def push(self, name: str, group: str, topic: str) -> None:
        """A push consumer that is begun; "fail" gives each message back once."""
        consumer = self.pair.lab.consumer(group, node=name, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe(topic, "*")

        def listener(messages: Any, context: Any) -> ConsumeConcurrentlyStatus:
            for message in messages:
                self.note(name, message)
            if name == "fail" and not messages[0].reconsume_times:
                return ConsumeConcurrentlyStatus.RECONSUME_LATER
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

        consumer.register_message_listener(_InOrder(self) if name == "ord" else listener)
        consumer.node.spawn(consumer.start(), f"start {name}")

    def lite(self, name: str, group: str, topic: str) -> None:
        """A lite pull consumer that polls on and on."""
        consumer = self.pair.lab.lite_pull_consumer(group, node=name, consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe(topic, "*")

        async def polls() -> None:
            await consumer.start()
            while True:
                for message in await consumer.poll(1_000):
                    self.note(name, message)

        consumer.node.spawn(polls(), "poll")

    async def send(self, number: int, topic: str) -> None:
        """Send a message that says its number."""
        try:
            queue = MessageQueue(topic, "broker-a", 0)
            result = await self.pair.producer.send(Message(topic, str(number)), queue=queue)
        except (RemotingException, MQClientException) as error:
            self.sent[number] = type(error).__name__
        else:
            self.sent[number] = result.send_status.value


class _InOrder(MessageListenerOrderly):
    def __init__(self, play: _Play) -> None:
        self._play = play

    def consume_message(self, messages: Any, context: Any) -> ConsumeOrderlyStatus:
        for message in messages:
            self._play.note("ord", message)
        return ConsumeOrderlyStatus.SUCCESS


@cache
def _played(way: str) -> Played:
    noted = timeline(f"master-killed-consumers.slave-read-{way}")
    play = _Play(way == "on")
    play.at(-13_700)
    for number in sorted(set(range(22)) - {step["n"] for step in noted["steps"] if step["event"] == "send"}):
        # Sent before the recording begins.
        play.pair.lab.world.wait_for(play.pair.producer.node.spawn(play.send(number, "HaTopic"), "send").join())
    play.push("push", "G1", "HaTopic")
    play.lite("lite", "G2", "HaTopic")
    play.push("ord", "G3", "OrdTopic")
    begun = False
    for step in noted["steps"]:
        if step["ms"] > BACK_MS[1]:
            break
        if not begun and step["ms"] > 3_100:
            play.at(3_100)
            play.push("late", "G4", "HaTopic")
            play.push("fail", "G5", "FailTopic")
            begun = True
        if step["event"] == "send":
            play.at(step["ms"])
            play.pair.producer.node.spawn(play.send(step["n"], step["topic"]), f"send {step['n']}")
        elif step["event"] == "signal":
            play.at(step["ms"])
            play.until_copied()
            play.pair.master.crash()
        elif step["event"] == "route" and '"0"' in step["route"] and step["ms"] > 60_000:
            play.at(step["ms"] - 500)
            play.pair.master.restart()
    play.at(BACK_MS[1] + 500)
    return Played(play.pair, play.start_us, play.consumed, play.sent)


def _asked(played: Played, window: tuple[float, float]) -> set[tuple[str, int, str]]:
    """Who asked whom with which code in that time."""
    names = {broker.node.spec.ip: broker.name for broker in played.pair.lab.brokers}
    found = set()
    for record in played.pair.lab.history.find("RequestSent"):
        ms = (record.ts_us - played.start_us) / 1_000
        if window[0] <= ms <= window[1] and record.request_code in CODES:
            to = names.get(record.remote.partition(":")[0])
            if to is not None and record.node in ("push", "lite", "ord", "late", "fail"):
                found.add((record.node, record.request_code, to))
    return found


def _recorded(way: str, window: tuple[float, float]) -> set[tuple[str, int, str]]:
    noted = timeline(f"master-killed-consumers.slave-read-{way}")
    found = set()
    for step in noted["steps"]:
        times = [step["ms"], *(ms for ms in step.get("alsoAtMs", []) if not isinstance(ms, str))]
        inside = any(window[0] <= ms <= window[1] for ms in times)
        if any(isinstance(ms, str) for ms in step.get("alsoAtMs", [])):
            # The times in the middle were left out.
            inside = min(times) <= window[1] and max(times) >= window[0]
        if step["event"] == "request" and step["code"] in CODES and inside:
            to = "broker-a" if step["to"].endswith("10") else "slave-a"
            found.add((step["client"], step["code"], to))
    return found


@pytest.mark.parametrize("way", WAYS)
def test_while_the_master_is_dead_everybody_asks_the_slave_what_was_asked_of_the_real_one(way: str) -> None:
    assert _asked(_played(way), DEAD_MS) == _recorded(way, DEAD_MS)


@pytest.mark.parametrize("way", WAYS)
def test_when_it_is_back_everybody_asks_the_master(way: str) -> None:
    played = _played(way)
    assert {to for _, _, to in _asked(played, BACK_MS)} == {"broker-a"}
    before = (BACK_MS[1] - 20_500, BACK_MS[1])
    last_pulls = {client for client, code, to in _asked(played, before) if code in (11, 361) and to == "broker-a"}
    assert last_pulls == {"push", "lite", "ord", "late", "fail"}


@pytest.mark.parametrize("way", WAYS)
def test_what_was_stored_is_consumed_as_often_as_in_the_recording(way: str) -> None:
    """Which sends fail right after the kill and the return is a matter of milliseconds: those of both count."""
    played = _played(way)
    noted = timeline(f"master-killed-consumers.slave-read-{way}")["steps"]
    both = {s["n"] for s in noted if s["event"] == "send" and s.get("sendStatus") == "SEND_OK"} | {0, 1}
    both &= {number for number, said in played.sent.items() if said == "SEND_OK"}
    assert set(range(22)) <= both
    real = Counter(
        (s["client"], int(s["message"]["n"][1:]), s["message"]["reconsumeTimes"])
        for s in noted
        if s["event"] == "consumed" and s["ms"] <= BACK_MS[1]
    )
    ours = Counter((client, number, times) for _, client, number, times in played.consumed)
    assert _only(ours, both) == _only(real, both)


def _only(consumed: Counter[tuple[str, int, int]], numbers: set[int]) -> dict[tuple[str, int, int], int]:
    return {key: times for key, times in consumed.items() if key[1] in numbers}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_can_be_sent_while_the_master_is_dead(way: str) -> None:
    sent = _played(way).sent
    assert {sent[24], sent[25]} == {"MQClientException"}
    assert sent[23] != "SEND_OK"


def test_running_consumers_go_to_the_slave_with_their_next_poll_of_routes() -> None:
    played = _played("on")
    names = {broker.node.spec.ip: broker.name for broker in played.pair.lab.brokers}
    pulls = [
        ((record.ts_us - played.start_us) / 1_000, names[record.remote.partition(":")[0]])
        for record in played.pair.lab.history.find("RequestSent", node="push", request_code=11)
    ]
    first = next(ms for ms, to in pulls if to == "slave-a")
    assert 101 < first <= 101 + 30_000 + 3_500
    assert {to for ms, to in pulls if first <= ms < 62_000} == {"slave-a"}


def test_a_slave_that_has_all_holds_their_pulls_as_a_master_does() -> None:
    """So nobody asks more often than the real ones did, give or take the one at each end of the time."""
    played = _played("on")
    ours = Counter(
        (record.node, record.topic)
        for record in played.pair.lab.history.find("PullRequested")
        if DEAD_MS[0] <= (record.ts_us - played.start_us) / 1_000 <= DEAD_MS[1]
    )
    real = Counter(
        (step["client"], step["fields"]["topic"])
        for step in timeline("master-killed-consumers.slave-read-on")["steps"]
        if step["event"] == "request" and step["code"] in (11, 361)
        for ms in (step["ms"], *step.get("alsoAtMs", ()))
        if isinstance(ms, int | float) and DEAD_MS[0] <= ms <= DEAD_MS[1]
    )
    assert {who for who, _ in real} == {"push", "lite", "ord", "late", "fail"}
    assert {queue: count - ours[queue] for queue, count in real.items() if abs(count - ours[queue]) > 2} == {}


@pytest.mark.parametrize("way", WAYS)
def test_a_slave_alone_answers_raw_requests_as_the_real_one(way: str) -> None:
    p = Pair(timer_wheel_enable=False, slave_read_enable=way == "on")
    p.send(12)
    p.lab.run_for(ms=65_000)
    p.master.crash()
    p.lab.run_for(ms=5_000)
    asker = p.asker()
    real = {
        (step["code"], (step["fields"] or {}).get("consumerGroup")): step
        for step in timeline(f"master-killed-consumers.slave-read-{way}")["steps"]
        if step["event"] == "raw" and step["ms"] < 10_000
    }
    answer = asker.pull("T", consumer_group="G1", max_msg_nums=4)
    noted = real[11, "G1"]
    assert (answer.code, answer.remark) == (noted["answer"], noted["remark"])
    if way == "on":
        said = answer.header_as(h.PullMessageResponseHeader)
        wanted = noted["answerFields"]
        assert said.suggest_which_broker_id == int(wanted["suggestWhichBrokerId"])
        assert (said.next_begin_offset, said.max_offset) == (4, 12)
    sent_back = asker.call(RequestCode.CONSUMER_SEND_MSG_BACK, h.ConsumerSendMsgBackRequestHeader(0, "G5", 0))
    noted = real[36, None]
    assert (sent_back.code, sent_back.remark) == (noted["answer"], noted["remark"])
    queue = MessageQueue("T", "broker-a", 0)
    locked = asker.call(RequestCode.LOCK_BATCH_MQ, body=LockBatchRequestBody("G3", "x", [queue]).encode())
    assert LockBatchResponseBody.decode(locked.body).lock_ok_mq_set == [queue]
    committed = asker.call(
        RequestCode.UPDATE_CONSUMER_OFFSET, h.UpdateConsumerOffsetRequestHeader("G7", "T", 0, 3)
    )
    noted = real[15, "G7"]
    assert (committed.code, committed.remark) == (noted["answer"], noted["remark"])
    end = asker.call(RequestCode.GET_MAX_OFFSET, h.GetMaxOffsetRequestHeader("T", 0))
    assert end.header_as(h.GetMaxOffsetResponseHeader).offset == 12


def test_a_slave_that_is_behind_lets_a_consumer_ask_again(pair: type[Pair]) -> None:
    p = pair(slave_read_enable=True)
    p.send(3)
    p.lab.run_for(ms=65_000)
    answer = p.asker().pull("T", 9)
    assert answer.code == 20
    assert answer.header_as(h.PullMessageResponseHeader).suggest_which_broker_id == 0


def test_a_master_sends_a_consumer_that_is_far_behind_to_its_slave(pair: type[Pair]) -> None:
    """40 % of the memory is taken to hold the newest messages; a slave's answer sends the consumer back."""
    p = pair(slave_read_enable=True, access_message_in_memory_max_ratio=0)
    p.send(20, 500)
    p.lab.run_for(ms=65_000)
    asker, master = p.asker(), f"{p.master.node.spec.ip}:10911"
    first = asker.call(RequestCode.PULL_MESSAGE, asker.pull_header("T", 0), to=master)
    assert first.header_as(h.PullMessageResponseHeader).suggest_which_broker_id == 1
    p.slave.running().message_store_config.access_message_in_memory_max_ratio = 40
    second = asker.pull("T", 0)
    assert second.code == 0
    assert second.header_as(h.PullMessageResponseHeader).suggest_which_broker_id == 0
