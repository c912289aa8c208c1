"""Connections from outside, as a world knows them: actions with nobody at the other end but a list."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mqlab.errors import LearnerError
from mqlab.sim import FAULTS, ConnectionRefused, ConnectTimeout, Transport, World
from mqlab.sim.outside import OUTSIDE, OutsideEnd, from_report, to_report

PORT = 9


class Server:
    """A process that takes connections in, and notes what comes."""

    def __init__(self, **options: Any) -> None:
        self.world = World(7, **options)
        self.node = self.world.node("alpha")
        self.node.boot = lambda node: node.listen(PORT, self.accept)
        FAULTS["restart"](self.world, "alpha")
        self.world.run_for(0)
        self.ends: list[Transport] = []
        self.came: list[bytes] = []
        self.closed = 0
        self.out: list[tuple[int, bytes | None, bool]] = []
        self.world.outside.output = lambda *what: self.out.append(what)

    def accept(self, end: Transport) -> None:
        self.ends.append(end)
        end.on_frame = self.came.append
        end.on_close = self.close

    def close(self) -> None:
        self.closed += 1

    def do(self, verb: str, **arguments: Any) -> None:
        OUTSIDE[verb](self.world, **arguments)

    def come_in(self, number: int = 1) -> None:
        self.do("come_in", number=number, address=f"{self.node.spec.ip}:{PORT}", remote="1.2.3.4:5", came_to="here")

    def bring(self, data: bytes, number: int = 1) -> None:
        self.do("bring", number=number, data=data)


@pytest.mark.parametrize("ties", [False, True])
def test_bytes_keep_their_order_and_come_before_the_end(ties: bool) -> None:
    server = Server(tie_is_choice=ties)
    server.come_in()
    for number in range(20):
        server.bring(b"%d" % number)
    server.do("hang_up", number=1, broken=False)
    server.world.run_for(0)
    assert server.came == [b"%d" % number for number in range(20)]
    assert (server.closed, server.ends[0].open, server.world.outside.ends) == (1, False, {})
    assert (server.ends[0].remote, server.ends[0].local) == ("1.2.3.4:5", f"{server.node.spec.ip}:{PORT}")


def test_what_is_sent_and_closed_goes_out_in_order() -> None:
    server = Server()
    server.come_in()
    server.world.run_for(0)
    server.ends[0].send(b"answer", 6)
    server.ends[0].close()
    server.ends[0].close()
    assert server.out == [(1, b"answer", False), (1, None, False)]
    server.bring(b"too late")
    server.do("hang_up", number=1, broken=True)
    server.world.run_for(0)
    assert (server.came, server.closed) == ([], 0)


def test_a_port_at_which_nobody_listens_breaks_the_connection() -> None:
    server = Server()
    server.do("come_in", number=1, address=f"{server.node.spec.ip}:{PORT + 1}", remote="1.2.3.4:5", came_to="here")
    server.do("come_in", number=2, address="9.9.9.9:9", remote="1.2.3.4:5", came_to="here")
    assert server.out == [(1, None, True), (2, None, True)]


def test_the_end_of_a_process_is_the_end_of_its_connections() -> None:
    server = Server()
    server.come_in()
    server.world.run_for(0)
    FAULTS["crash"](server.world, "alpha")
    assert (server.out, server.closed) == ([(1, None, True)], 0)
    assert server.world.outside.ends == {}


def test_a_dark_machine_is_silent_until_it_is_back() -> None:
    server = Server()
    server.come_in()
    server.world.run_for(0)
    FAULTS["power_off"](server.world, "alpha")
    server.bring(b"into the dark")
    server.world.run_for(1_000_000)
    assert server.out == []
    FAULTS["restart"](server.world, "alpha")
    assert server.out == [(1, None, True)]


class Caller(Server):
    """A process that connects to addresses outside, and notes what becomes of it."""

    def __init__(self, *addresses: str) -> None:
        super().__init__()
        self.dialled: list[tuple[int, str]] = []
        self.problems: list[str] = []
        self.world.outside.dial = lambda *what: self.dialled.append(what)
        self.do("reach", addresses=list(addresses))

    def call(self, address: str) -> None:
        self.node.spawn(self._call(address), f"calls {address}")
        self.world.run_for(0)

    async def _call(self, address: str) -> None:
        try:
            self.accept(await self.node.connect(address, 3_000))
        except (ConnectionRefused, ConnectTimeout) as error:
            self.problems.append(str(error))


def test_a_process_connects_to_what_it_may_reach_outside() -> None:
    caller = Caller("1.2.3.4:5", "out")
    for address in ("1.2.3.4:5", "out:7", "1.2.3.4:6"):
        caller.call(address)
    assert caller.dialled == [(-1, "1.2.3.4:5"), (-2, "out:7")]
    caller.do("reached", number=-1, local="9.9.9.9:40000")
    caller.bring(b"at once", -1)
    caller.do("hang_up", number=-2, broken=True)
    caller.world.run_for(0)
    (end,) = caller.ends
    assert (end.local, end.remote, caller.came) == ("9.9.9.9:40000", "1.2.3.4:5", [b"at once"])
    assert caller.problems == ["nobody listens at out:7"]
    end.send(b"hello", 5)
    caller.do("hang_up", number=-1, broken=False)
    caller.world.run_for(3_000_000)
    assert (caller.out, caller.closed) == ([(-1, b"hello", False)], 1)
    assert caller.problems[1:] == ["1.2.3.4:6 did not answer within 3000 ms"]


def test_who_waits_no_more_for_a_connection_outside_gives_it_up() -> None:
    caller = Caller("1.2.3.4:5")
    caller.call("1.2.3.4:5")
    caller.world.run_for(3_000_000)
    assert (caller.problems, caller.out) == (["1.2.3.4:5 did not answer within 3000 ms"], [(-1, None, True)])
    caller.do("reached", number=-1, local="9.9.9.9:40000")
    assert caller.out[1:] == [(-1, None, True)]
    caller.call("1.2.3.4:5")
    FAULTS["crash"](caller.world, "alpha")
    assert caller.out[2:] == [(-2, None, True)]
    caller.do("hang_up", number=-2, broken=True)
    caller.world.run_for(5_000_000)
    assert (caller.world.outside.attempts, caller.ends, len(caller.problems)) == ({}, [], 1)


@pytest.mark.parametrize(
    ("advertised", "told"), [("out:1", "out:1"), (":1", "here:1"), (None, "10.0.0.1:9")]
)
def test_an_address_is_told_as_it_can_be_reached(advertised: str | None, told: str) -> None:
    server = Server()
    if advertised is not None:
        server.do("advertise", addresses={"10.0.0.1:9": advertised})
    server.come_in()
    server.world.run_for(0)
    (end,) = server.ends
    assert isinstance(end, OutsideEnd)
    assert end.outer_address("10.0.0.1:9") == told


def test_all_clocks_are_set_and_those_of_later_machines_too() -> None:
    server = Server()
    told: list[int] = []
    server.node.life.clock_listeners.append(lambda: told.append(server.node.now_ms()))
    server.do("set_epoch", epoch_ms=5_000)
    server.world.run_for(2_000_000)
    assert told == [5_000]
    assert (server.node.now_ms(), server.world.node("beta").now_ms()) == (7_000, 7_000)
    assert not server.node.clock_is_wrong


def test_bytes_stand_in_a_report_as_text() -> None:
    written = to_report({"number": 1, "data": b"\xff\0"})
    assert json.loads(json.dumps(written)) == {"number": 1, "data": "/wA="}
    assert from_report("bring", written) == {"number": 1, "data": b"\xff\0"}


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("bring", {"number": 1}),
        ("bring", {"number": 1, "data": "no base64!"}),
        ("bring", {"number": "1", "data": ""}),
        ("bring", {"number": True, "data": ""}),
        ("come_in", {"number": 1, "address": 5, "remote": "", "came_to": ""}),
        ("hang_up", {"number": 1, "broken": 1}),
        ("advertise", {"addresses": {"a": 1}}),
        ("reach", {"addresses": [1]}),
        ("reached", {"number": -1}),
        ("set_epoch", {"epoch_ms": "now"}),
        ("hang_up", {"number": 1, "broken": True, "more": 1}),
    ],
)
def test_what_a_damaged_report_says_is_refused(verb: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(LearnerError, match=f"{verb} takes"):
        from_report(verb, arguments)
