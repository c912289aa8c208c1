"""The checks of lab 03: what is in the table and in line, and a sender that holds itself back."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from mqlab.check import Wrong, lab_check
from mqlab.lab import Lab
from mqlab.protocol.message import Message


@lab_check("03/answer", points=1)
def answer_arrived(answer: Callable[..., object], *, seed: int) -> Wrong | None:
    """Answers come in any order, some twice, some for nobody; each goes to the one who waits for it, once."""
    random = Random(seed)
    got: list[tuple[int, str]] = []
    waiting = random.sample(range(100, 200), 6)
    table: dict[int, Callable[[str], None]] = {
        opaque: lambda text, opaque=opaque: got.append((opaque, text))  # type: ignore[misc]
        for opaque in waiting
    }
    arriving = [*random.sample(waiting, 4), random.randrange(200, 300)]
    arriving.insert(random.randrange(1, 6), arriving[0])
    steps = []
    for opaque in arriving:
        expected = [(opaque, f"answer {opaque}")] if opaque in waiting else []
        got.clear()
        answer(table, opaque, f"answer {opaque}")
        waiting = [other for other in waiting if other != opaque]
        steps.append(f"an answer with opaque {opaque} comes; called: {got}; left in the table: {sorted(table)}")
        if got != expected:
            who = f"the function of {opaque}, once" if expected else "nobody, since nobody waits for it any more"
            return Wrong(f"the answer {opaque} comes; to be called: {who}, and called are {got}", "\n".join(steps))
        if sorted(table) != sorted(waiting):
            told = (
                f"after the answer {opaque} the table has the rows {sorted(table)}, and should have {sorted(waiting)}"
            )
            return Wrong(told, "\n".join(steps))
    return None


@lab_check("03/in-line", points=1)
def where_they_are(answer: Callable[[int, int, int, int], tuple[int, int]], *, seed: int) -> Wrong | None:
    """A broker hangs, calls of all three ways begin at once: in the table and in line are as many as was foretold."""
    random = Random(f"03/in-line/{seed}")
    permits = random.randint(4, 12)
    calls = {way: random.randint(0, 9) for way in ("async", "sync", "one-way")}
    lab = Lab(seed, history=False)
    lab.name_server()
    lab.broker()
    lab.create_topic("Orders", 1)
    producer = lab.producer("shop", client_async_semaphore_value=permits)
    lab.run(producer.start())
    lab.run(producer.send(Message("Orders", b"the first one opens the connection")))
    lab.run_for(seconds=2)
    lab.freeze("broker-a")
    foretold = answer(calls["async"], calls["sync"], calls["one-way"], permits)
    for way in random.sample(list(calls), counts=list(calls.values()), k=sum(calls.values())):
        message = Message("Orders", way.encode())
        if way == "async":
            lab.run(producer.send_async(message, lambda *_: None))
        elif way == "sync":
            producer.send(message).start()
        else:
            lab.run(producer.send_oneway(message))
    lab.run_for(ms=10)
    was = len(lab.response_table(producer).rows), lab.permits(producer).rows[0][3]
    if foretold == was:
        return None
    told = f"{calls['async']} async, {calls['sync']} sync, {calls['one-way']} one-way, and {permits} permits"
    return Wrong(f"{told}: {was[0]} are in the table and {was[1]} in line, and yours says {foretold!r}")


class _Sender(Protocol):
    def submit(self, message: Message, callback: Callable[[Any, Any], None]) -> None: ...


class _Flood:
    """A producer, a broker that is slow, hangs or is killed, and orders that a `Bounded` is given all at once."""

    def __init__(self, answer: Callable[..., _Sender], seed: int) -> None:
        self.random = random = Random(f"03/bounded/{seed}")
        self.limit = random.randint(2, 6)
        self.orders = random.randint(3, 5) * self.limit
        self.adding, *self.raising = random.sample(range(self.orders - self.limit), 1 + self.limit)
        self.lab = lab = Lab(seed)
        lab.name_server()
        lab.broker()
        lab.create_topic("Orders", 1)
        self.producer = lab.producer("shop", send_msg_timeout=1_000, retry_times_when_send_async_failed=0)
        lab.run(self.producer.start())
        lab.run(self.producer.send(Message("Orders", b"the first one opens the connection")))
        way_ms = random.randint(5, 40)
        lab.act("delay", source="broker-a", target="producer-1", ms=way_ms)
        self.trouble_ms = random.randint(1, way_ms * (self.orders // self.limit - 1))
        self.sent: list[str] = []
        self.heard: list[str] = []
        self.out: set[str] = set()
        self.most = 0
        self.steps: list[str] = []
        self.sender = answer(self._send, self.limit)

    def play(self) -> Wrong | None:
        """Submit all, let the broker have its trouble, and wait until everything has come back; what was wrong."""
        names = [f"order {number}" for number in range(self.orders)]
        for name in names:
            self._submit(name)
        hangs = self.random.choice([True, False])
        self.lab.run_for(ms=self.trouble_ms)
        (self.lab.freeze if hangs else self.lab.crash)("broker-a")
        self._tell(f"the broker {'hangs' if hangs else 'is killed'}")
        self.lab.run_for(seconds=4)
        (self.lab.thaw if hangs else self.lab.restart)("broker-a")
        self._tell("the broker is well again")
        self.lab.run_for(seconds=40)
        return self._judged([*names, "one more"])

    def _submit(self, name: str) -> None:
        def called(result: Any, error: Any) -> None:
            self.heard.append(name)
            self._tell(f"the callback of {name} is called: {'stored' if result else type(error).__name__}")
            if name == f"order {self.adding}":
                self._submit("one more")
            if name in (f"order {number}" for number in self.raising):
                raise ValueError(f"the callback of {name} raises")

        self._tell(f"submit {name}")
        self.sender.submit(Message("Orders", name.encode()), called)

    def _send(self, message: Message, callback: Callable[[Any, Any], None]) -> None:
        name = message.body.decode()
        self.sent.append(name)
        self.out.add(name)
        self.most = max(self.most, len(self.out))
        self._tell(f"send {name}: {len(self.out)} on their way")

        def answered(result: Any, error: Any) -> None:
            self.out.discard(name)
            callback(result, error)

        self.producer.send_async(message, answered).start()

    def _tell(self, words: str) -> None:
        self.steps.append(f"{self.lab.now_ms:>9.3f} ms  {words}")

    def _judged(self, submitted: list[str]) -> Wrong | None:
        told = f"{self.orders} messages are submitted, and {self.limit} may be on their way. "
        trace = "\n".join(self.steps)
        if self.most > self.limit:
            return Wrong(f"{told}There were {self.most}", trace)
        if self.sent != submitted:
            first = next((name for name, want in zip(self.sent, submitted, strict=False) if name != want), None)
            if first is None and len(self.sent) < len(submitted):
                return Wrong(f"{told}{submitted[len(self.sent)]} was never sent", trace)
            return Wrong(f"{told}They are not sent in the order in which they were submitted: see {first}", trace)
        for name in submitted:
            times = self.heard.count(name)
            if times != 1:
                return Wrong(f"{told}The callback of {name} is called {times} times, and not once", trace)
        return None


@lab_check("03/bounded", points=3)
def bounded(answer: Callable[..., _Sender], *, seed: int) -> Wrong | None:
    """A flood, a broker in trouble, callbacks that raise or submit: never too many out, in order, and none is lost."""
    return _Flood(answer, seed).play()
