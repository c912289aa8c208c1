"""Frames of a real client and a real broker, damaged at random: what a broker and a name server have to live through.

`python -m tests.broker.mutated_frames 100000` plays that many and says how many were answered, refused or dropped;
with a second number it plays that one alone.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from mqlab.protocol import headers as h
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.protocol.route import TopicRouteData, queues_to_subscribe
from mqlab.sim import Endpoint
from tests.broker.conftest import Cluster

FRAMES = Path(__file__).parent.parent / "golden" / "frames"
FRAMES_PER_WORLD = 500

_PREFIX = struct.Struct(">iI")
_NUMBERS = [0, -1, 1, 127, 1 << 15, 10**9, (1 << 31) - 1, 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, 1 << 63, 10**30]
_TEXTS = ["", " ", "\ud800", "x\udfff", "a\x00b", "\u2028", "%RETRY%", "TBW102", "true", "x" * 300, "@", "../x", "1e9"]
_OTHERS: list[Any] = [None, True, 1.5, [], {}, [1], {"a": 1}, {"1": "x"}]


class GoldenRequest(NamedTuple):
    """A recorded request, and whether it went to a name server."""

    to_namesrv: bool
    frame: bytes


@cache
def golden_requests() -> tuple[GoldenRequest, ...]:
    """Every recorded request that is not the same as one before."""
    seen: dict[GoldenRequest, None] = {}
    for path in sorted(FRAMES.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            row = json.loads(line)
            frame = base64.b64decode(row["frame"])
            target = row["dir"].split("->")[1]
            if target != "client" and row["kind"] != "response":
                seen[GoldenRequest(target == "namesrv", frame)] = None
    return tuple(seen)


def mutated(number: int) -> GoldenRequest:
    """The frame with this number: always the same."""
    random = Random(number)
    golden = random.choice(golden_requests())
    if random.random() < 0.3:
        return golden._replace(frame=_damaged_bytes(random, golden.frame))
    return golden._replace(frame=_damaged_members(random, golden.frame))


def _damaged_bytes(random: Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(data) or 1)
        kind = random.randrange(5)
        if kind == 0 and data:
            data[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            del data[at : at + random.randint(1, 20)]
        elif kind == 2:
            data[at:at] = random.randbytes(random.randint(1, 20))
        elif kind == 3:
            data[at : at + 4] = random.choice((b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0"))
        else:
            data[at:at] = data[at : at + random.randint(1, 60)]
    if random.random() < 0.7 and len(data) >= 8:
        # Else hardly a frame would come farther than its length.
        _PREFIX.pack_into(data, 0, len(data) - 4, struct.unpack_from(">I", data, 4)[0])
    return bytes(data)


def _damaged_members(random: Random, frame: bytes) -> bytes:
    """The frame with other values in its header or its body, which can both be read."""
    word = struct.unpack_from(">I", frame, 4)[0]
    header, body = frame[8 : 8 + (word & 0xFFFFFF)], frame[8 + (word & 0xFFFFFF) :]
    if word >> 24:
        parts = RemotingCommand.decode(frame)
        members: dict[str, Any] = {"code": parts.code, "extFields": parts.ext_fields, "opaque": parts.opaque}
        members.update(flag=parts.flag, language="JAVA", version=parts.version, serializeTypeCurrentRPC="JSON")
    else:
        members = json.loads(header)
    try:
        content = json.loads(body)
    except ValueError:
        content = None
    for _ in range(random.randint(1, 3)):
        if isinstance(content, dict) and random.random() < 0.5:
            _damage(random, content)
        elif random.random() < 0.2:
            body = _damaged_bytes(random, body + b"\0") if body else random.randbytes(random.randrange(30))
        elif isinstance(members.get("extFields"), dict) and random.random() < 0.85:
            _damage(random, members["extFields"])
        else:
            _damage(random, members)
    if content is not None:
        body = json.dumps(content).encode()
    head = json.dumps(members).encode()
    return _PREFIX.pack(4 + len(head) + len(body), len(head)) + head + body


def _damage(random: Random, members: dict[str, Any]) -> None:
    """Give one member, at any depth, another value; or take it away; or add one."""
    holders = list(_holders(members))
    holder: Any = random.choice(holders)
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return
    key = random.choice(keys)
    kind = random.randrange(10)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        holder[random.choice(_TEXTS)] = holder.pop(key)
    elif kind <= 4:
        number = random.choice(_NUMBERS)
        holder[key] = str(number) if isinstance(holder[key], str) else number
    elif kind <= 7:
        holder[key] = random.choice(_TEXTS)
    else:
        holder[key] = random.choice(_OTHERS)


def _holders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for member in value.values() if isinstance(value, dict) else value:
            yield from _holders(member)


class Siege:
    """A broker and a name server in one world, and a client that sends them whatever it is given."""

    def __init__(self, seed: int) -> None:
        self.cluster = Cluster(seed=seed, wire_bytes=True)
        self.cluster.topic("T", 4)
        self.node = self.cluster.world.node("attacker")
        self.endpoints: dict[bool, Endpoint] = {}
        self.answers: Counter[int] = Counter()

    def send(self, request: GoldenRequest) -> None:
        """Send the frame, over a new connection if the last one was closed, and let the world go on for a while."""
        world, cluster = self.cluster.world, self.cluster
        endpoint = self.endpoints.get(request.to_namesrv)
        if endpoint is None or not endpoint.open:
            address = cluster.namesrv_address if request.to_namesrv else cluster.broker_address
            endpoint = world.wait_for(self.node.spawn(self.node.connect(address, 3_000), "connect").join())
            endpoint.on_frame = self._answered
            self.endpoints[request.to_namesrv] = endpoint
        endpoint.send(request.frame, len(request.frame))
        cluster.run(20)

    def _answered(self, frame: bytes) -> None:
        self.answers[RemotingCommand.decode(frame).code] += 1

    def end(self) -> None:
        """Let the periodic work come around, ask something honest, stop and start again; nothing may fail."""
        cluster, client = self.cluster, self.cluster.client()
        cluster.run(35_000)
        for topic in list(cluster.broker.topic_config_manager.topic_config_table):
            client.call(RequestCode.GET_TOPIC_STATS_INFO, h.GetTopicStatsInfoRequestHeader(topic))
            answer = client.call(
                RequestCode.GET_ROUTEINFO_BY_TOPIC, h.GetRouteInfoRequestHeader(topic), to=cluster.namesrv_address
            )
            if answer.code == ResponseCode.SUCCESS:
                queues_to_subscribe(topic, TopicRouteData.decode(answer.body))
        for group in list(cluster.broker.subscription_group_manager.subscription_group_table):
            client.call(RequestCode.GET_CONSUME_STATS, h.GetConsumeStatsRequestHeader(group))
        cluster.topic("honest", 2)
        assert client.send("honest").code == ResponseCode.SUCCESS
        cluster.broker.shutdown().play()
        for name in ("namesrv", "broker-a"):
            cluster.do("restart", node=name)
        cluster.run(2_000)
        assert client.send("honest").code == ResponseCode.SUCCESS


def play(first: int, count: int) -> Counter[int]:
    """Play the frames with these numbers in one world; the answers that came, by code."""
    siege = Siege(first)
    for request in golden_requests():
        # What is damaged afterwards speaks of topics and groups that are there.
        siege.send(request)
    for number in range(first, first + count):
        request = mutated(number)
        try:
            siege.send(request)
        except BaseException as problem:
            problem.add_note(f"at frame {number} of the world {first}: {request}"[:2_000])
            raise
    siege.end()
    return siege.answers


def main(count: int) -> None:
    """Play many frames, in worlds of some hundred, and go on after a failure; print what came of them."""
    import signal
    import traceback

    def too_long(number: int, frame: object) -> None:
        raise BaseException("this takes longer than 20 seconds")

    signal.signal(signal.SIGALRM, too_long)
    total: Counter[int] = Counter()
    stopped = 0
    for first in range(0, count, FRAMES_PER_WORLD):
        signal.alarm(20)
        try:
            total += play(first, FRAMES_PER_WORLD)
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt):
                raise
            stopped += 1
            lines = traceback.format_exception(problem)
            print(f"--- world {first}\n", "".join(lines)[-2_500:], flush=True)
    signal.alarm(0)
    print(f"{count} frames, {-(-count // FRAMES_PER_WORLD)} worlds, {stopped} stopped; answers by code: {dict(total)}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        play(int(sys.argv[2]), int(sys.argv[1]))
    else:
        main(int(sys.argv[1]))
