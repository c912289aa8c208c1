"""What programs outside see of a served world, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from mqlab.client import Message, SendStatus
from mqlab.errors import LearnerError, SimulationError
from mqlab.lab import Lab
from mqlab.protocol.codes import RequestCode, ResponseCode
from mqlab.protocol.command import FRAME_MAX_LENGTH, RemotingCommand
from mqlab.protocol.headers import SendMessageResponseHeader, ViewMessageRequestHeader
from mqlab.protocol.message_id import decode_message_id
from mqlab.protocol.record import scan_records
from mqlab.remoting import RemotingClient
from mqlab.replay import read_report, replay
from mqlab.serving import Serving
from mqlab.serving.line import MOST_UNSENT_BYTES
from tests.serving.conftest import Connects, pull_header

FOUND = int(ResponseCode.SUCCESS)


def test_a_message_that_was_sent_over_a_socket_is_pulled_over_another(connect: Connects, broker_address: str) -> None:
    sent = connect(broker_address).send(b"over a socket")
    pulled = connect(broker_address).take(0)
    assert (sent.code, pulled.code) == (0, FOUND)
    assert b"over a socket" in (pulled.body or b"")


def test_a_route_names_the_host_that_the_client_has_used(connect: Connects, serving: Serving) -> None:
    route = json.loads(connect(serving.name_server).route("T"))
    assert route["brokerDatas"][0]["brokerAddrs"] == {"0": f"127.0.0.1:{serving.ports['broker-a']}"}
    other = json.loads(connect(serving.name_server.replace("127.0.0.1", "localhost")).route("T"))
    assert other == route


def test_the_cluster_is_told_with_the_addresses_outside(connect: Connects, serving: Serving) -> None:
    body = connect(serving.name_server).ask(RequestCode.GET_BROKER_CLUSTER_INFO).body or b""
    assert f'"127.0.0.1:{serving.ports["broker-a"]}"'.encode() in body
    assert b"10.0." not in body


@pytest.mark.parametrize(
    ("advertise", "told"),
    [("example.org", "example.org:{}"), ({"broker-a": "example.org:30911"}, "example.org:30911")],
)
def test_who_is_behind_a_mapped_port_says_which_address_is_told(
    connect: Connects, lab: Lab, advertise: str | dict[str, str], told: str
) -> None:
    with lab.serve(advertise=advertise) as serving:
        route = json.loads(connect(serving.name_server).route("T"))
        assert route["brokerDatas"][0]["brokerAddrs"]["0"] == told.format(serving.ports["broker-a"])


def test_a_message_is_found_at_the_address_that_its_id_holds(connect: Connects, lab: Lab, serving: Serving) -> None:
    sent = connect(serving.addresses["broker-a"]).send(b"to be found").header_as(SendMessageResponseHeader)
    found = decode_message_id(sent.msg_id)
    assert found.address == serving.addresses["broker-a"]
    header = ViewMessageRequestHeader("T", found.offset)
    answer = connect(found.address).ask(RequestCode.VIEW_MESSAGE_BY_ID, header)
    (message,) = scan_records(answer.body or b"")
    assert (message.body, message.offset_msg_id) == (b"to be found", sent.msg_id)
    with lab.world.door:
        inside = RemotingClient(lab.world.node("inside"))
        call = inside.invoke_sync(found.address, RemotingCommand.request(RequestCode.VIEW_MESSAGE_BY_ID, header), 3_000)
        assert lab.world.wait_for(inside.node.spawn(call, "view").join()).body == answer.body


@pytest.mark.parametrize(
    ("advertise", "held"),
    [
        ("127.0.0.9", "127.0.0.9:{}"),
        ({"broker-a": "127.0.0.9:30911"}, "127.0.0.9:30911"),
        ({"broker-a": "[::1]:30911"}, "0:0:0:0:0:0:0:1:30911"),
        ("no-such-name.invalid", "10.0.0.2:10911"),
    ],
)
def test_a_message_id_holds_the_address_that_clients_are_told(
    connect: Connects, lab: Lab, advertise: str | dict[str, str], held: str
) -> None:
    with lab.serve(advertise=advertise) as serving:
        sent = connect(serving.addresses["broker-a"]).send(b"x").header_as(SendMessageResponseHeader)
        assert decode_message_id(sent.msg_id).address == held.format(serving.ports["broker-a"])


def test_clients_of_the_world_are_told_the_worlds_addresses(lab: Lab, serving: Serving) -> None:
    with lab.world.door:
        producer = lab.producer("P")
        lab.run(producer.start())
        assert lab.run(producer.send(Message("T", b"from inside"))).send_status is SendStatus.SEND_OK


def test_the_worlds_clocks_show_this_machines_time(lab: Lab, serving: Serving) -> None:
    for node in lab.world.nodes.values():
        assert abs(node.now_ms() - time.time() * 1_000) < 5_000


def test_the_route_is_there_all_the_time(connect: Connects, serving: Serving) -> None:
    for _ in range(8):
        assert connect(serving.name_server).route("T")
        serving.fast_forward("5s")


def test_a_session_is_played_again_to_the_same_hash(connect: Connects, tmp_path: Path) -> None:
    from mqlab.scenarios import get

    lab = get("served").build(3, parameters={"brokers": 2, "slaves": 1})
    with lab.serve() as serving:
        route = json.loads(connect(serving.name_server).route("TBW102"))
        assert len(route["brokerDatas"]) == 2
        program = connect(f"127.0.0.1:{serving.ports['broker-b']}")
        for number in range(50):
            assert program.send(b"%d" % number, queue_id=number % 4).code == 0
        lab.crash("broker-b")
        assert program.read() is None
        lab.restart("broker-b")
        serving.fast_forward("10s")
        again = connect(f"127.0.0.1:{serving.ports['broker-b']}")
        assert again.send(b"after the crash").code == 0
        again.close()
        serving.report(tmp_path / "session.mqlab")
        assert serving.state == "serving"
    result = replay(read_report(str(tmp_path / "session.mqlab")))
    assert result.agrees, result
    assert [r for r in result.lab.history.records() if r.kind == "MessageStored" and r.topic == "T"]


def test_a_crash_ends_the_connection_and_a_restart_takes_new_ones(
    connect: Connects, lab: Lab, broker_address: str
) -> None:
    program = connect(broker_address)
    program.send(b"1")
    lab.crash("broker-a")
    assert program.read() is None
    assert connect(broker_address).read() is None, "nobody listens at the port of a process that is down"
    lab.restart("broker-a")
    lab.run_for(seconds=5)
    assert connect(broker_address).send(b"2").code == 0


def test_a_machine_without_power_says_nothing_until_it_is_back(
    connect: Connects, lab: Lab, broker_address: str
) -> None:
    program = connect(broker_address)
    program.send(b"1")
    lab.power_off("broker-a")
    program.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        program.read()
    program.socket.settimeout(20)
    lab.restart("broker-a")
    assert program.read() is None


def test_a_frozen_broker_answers_when_it_goes_on(connect: Connects, lab: Lab, broker_address: str) -> None:
    program = connect(broker_address)
    program.send(b"1")
    lab.freeze("broker-a")
    opaque = program.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)))
    program.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        program.read()
    program.socket.settimeout(20)
    lab.thaw("broker-a")
    answer = program.read()
    assert answer is not None
    assert answer.opaque == opaque


def test_what_is_no_frame_ends_its_connection_and_no_other(
    connect: Connects, lab: Lab, broker_address: str
) -> None:
    good = connect(broker_address)
    too_long, no_header = struct.pack(">i", FRAME_MAX_LENGTH), struct.pack(">ii", 4, 1 << 20)
    for data in (b"GET / HTTP/1.1\r\n\r\n", too_long, no_header, b"\0" * 64):
        bad = connect(broker_address)
        bad.socket.sendall(data)
        assert bad.read() is None, data
        assert good.send(b"still here").code == 0
    assert len([r for r in lab.history.records() if r.kind == "FrameRefused"]) == 4


def test_small_frames_go_at_once(connect: Connects, lab: Lab, broker_address: str) -> None:
    connect(broker_address).send(b"1")
    (line,) = serving_lines(lab)
    assert line.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_frame_may_come_in_any_pieces(connect: Connects, broker_address: str) -> None:
    program = connect(broker_address)
    frame = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode()
    program.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for i in range(len(frame)):
        program.socket.sendall(frame[i : i + 1])
    assert program.read() is not None


def test_who_does_not_read_is_not_read_from_and_harms_nobody(
    connect: Connects, lab: Lab, broker_address: str
) -> None:
    good, lazy = connect(broker_address), connect(broker_address)
    for _ in range(8):
        good.send(b"x" * 500_000)
    lazy.socket.setblocking(False)
    asked = 0
    frame = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode()
    for _ in range(400):
        try:
            asked += lazy.socket.send(frame)
        except BlockingIOError:
            break
        assert good.send(b"served meanwhile").code == 0
    (line,) = [line for line in serving_lines(lab) if line.get_write_buffer_size()]
    assert line.get_write_buffer_size() <= MOST_UNSENT_BYTES
    read = sum(r.kind == "RequestReceived" and r.request_name == "PULL_MESSAGE" for r in lab.history.records())
    assert 0 < read < asked // len(frame)


def test_who_asks_for_more_than_it_takes_is_cut_off(connect: Connects, lab: Lab, broker_address: str) -> None:
    good, lazy = connect(broker_address), connect(broker_address)
    for _ in range(8):
        good.send(b"x" * 500_000)
    lazy.socket.sendall(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)).encode() * 400)
    for _ in range(2_000):
        assert good.send(b"served meanwhile").code == 0
        if len(serving_lines(lab)) == 1:
            break
    taken = 0
    while lazy.read() is not None:
        taken += 1
    assert taken < 400


def test_while_the_world_stands_still_nobody_can_send_without_end(
    connect: Connects, serving: Serving, broker_address: str
) -> None:
    serving.pause()
    for _ in range(3):
        program = connect(broker_address)
        program.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            program.socket.sendall(bytes(40_000_000))
    assert serving.state == "paused"


def serving_lines(lab: Lab) -> list[Any]:
    """The sockets of the connections there are."""
    edge = lab.world.outside.output.__self__  # type: ignore[attr-defined]
    return [line.transport for line in edge._lines.values()]


def test_one_connection_too_many_is_turned_away(connect: Connects, lab: Lab) -> None:
    with lab.serve(most_connections=2) as serving:
        address = f"127.0.0.1:{serving.ports['broker-a']}"
        programs = [connect(address) for _ in range(2)]
        assert [program.send(b"in").code for program in programs] == [0, 0]
        assert connect(address).read() is None
        assert serving.turned_away == 1
        assert programs[0].send(b"still in").code == 0


def test_a_pause_holds_the_answers_back(connect: Connects, serving: Serving, broker_address: str) -> None:
    program = connect(broker_address)
    program.send(b"1")
    serving.pause()
    program.socket.settimeout(0.1)
    program.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)))
    with pytest.raises(TimeoutError):
        program.read()
    assert serving.state == "paused"
    program.socket.settimeout(20)
    serving.resume()
    assert program.read() is not None


def test_a_breakpoint_pauses_and_what_is_stepped_is_answered(
    connect: Connects, lab: Lab, serving: Serving, broker_address: str
) -> None:
    program = connect(broker_address)
    with lab.break_on("RequestReceived", request_name="PULL_MESSAGE"):
        program.write(RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(0)))
        program.socket.settimeout(0.1)
        for _ in range(200):
            with pytest.raises(TimeoutError):
                program.read()
            if serving.state == "paused":
                break
    assert (serving.state, lab.stopped_at.kind if lab.stopped_at else "") == ("paused", "RequestReceived")
    program.socket.settimeout(20)
    lab.step(200)
    assert program.read() is not None


def test_after_its_end_the_world_can_be_served_again(connect: Connects, lab: Lab) -> None:
    for number in range(2):
        serving = lab.serve()
        program = connect(f"127.0.0.1:{serving.ports['broker-a']}")
        assert program.send(b"%d" % number).code == 0
        with pytest.raises(LearnerError, match="served already"):
            lab.serve()
        serving.close()
        serving.close()
        assert serving.state == "closed"
        assert program.read() is None
    assert lab.world.outside.ends == {}


def test_two_below_its_port_a_broker_listens_too(connect: Connects, serving: Serving) -> None:
    below = f"127.0.0.1:{serving.ports['broker-a'] - 2}"
    assert connect(below).send(b"from a VIP").code == 0
    assert b"from a VIP" in (connect(serving.addresses["broker-a"]).take(0).body or b"")


def test_where_the_port_for_vips_is_taken_this_is_said(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LearnerError, match=f"broker-a-vip cannot be served at 127.0.0.1:{port}"):
            lab.serve(ports={"broker-a": port + 2})


INTERRUPTED = """
import faulthandler, signal, threading

faulthandler.dump_traceback_later(90, exit=True)
from mqlab.lab import Lab
from tests.serving.conftest import Program

lab = Lab(7)
lab.name_server()
lab.broker()
with lab.serve() as serving:
    program = Program(serving.addresses["broker-a"])
    threading.Timer(0.2, lambda: signal.pthread_kill(HEARD_BY, signal.SIGINT)).start()
    try:
        serving.wait()
    except KeyboardInterrupt:
        print(serving.state, program.send(b"still served").code, flush=True)
    serving.close()
    print(serving.state, lab.world.outside.served, program.read(), flush=True)
"""


@pytest.mark.parametrize("thread", ["threading.main_thread().ident", "threading.get_ident()"], ids=["main", "another"])
def test_who_is_interrupted_while_waiting_can_close(thread: str) -> None:
    """In a process of its own, since an interrupt is for the whole of it; the system says which thread gets it."""
    script = INTERRUPTED.replace("HEARD_BY", thread)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "serving 0\nclosed False None\n", done.stderr


def test_ports_are_those_that_can_be_asked_for_again(lab: Lab) -> None:
    with lab.serve() as serving:
        ports = serving.ports
    with lab.serve(ports=ports) as serving:
        assert serving.ports == ports


def test_bad_requests_are_told_before_anything_is_open(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LearnerError, match=f"127.0.0.1:{port}: Address already in use"):
            lab.serve(ports={"broker-a": port})
    for wrong, message in (
        ({"ports": {"broker-z": 0}}, "broker-z"),
        ({"ports": {"broker-a": 70_000}}, "70000"),
        ({"advertise": "example.org:80"}, "is no host"),
        ({"advertise": {"broker-z": "a:1"}}, "broker-z"),
        ({"most_connections": 0}, "most_connections"),
        ({"host": "256.1.1.1"}, "cannot be served"),
    ):
        with pytest.raises(LearnerError, match=message):
            lab.serve(**wrong)  # type: ignore[arg-type]
    with pytest.raises(LearnerError, match="nothing to serve"):
        Lab(1).serve()
    assert not lab.world.outside.served


def test_a_world_that_breaks_ends_the_serving_loudly(connect: Connects, lab: Lab) -> None:
    serving = lab.serve()

    async def dies() -> None:
        raise RuntimeError("a defect")

    lab.world.nodes["broker-a"].spawn(dies(), "defect")
    with pytest.raises(SimulationError, match="a defect"):
        serving.wait(20)
    assert serving.state == "closed"


def test_views_are_told_in_the_loop_of_their_notebook_that_something_came(
    connect: Connects, lab: Lab
) -> None:
    class View:
        """Notes where the cursor stands when it is told."""

        def __init__(self) -> None:
            self.seen: list[str] = []
            self.threads: set[int] = set()

        def changed(self) -> None:
            self.threads.add(threading.get_ident())
            self.seen += [r.kind for r in lab.history.records(0, lab.history.cursor) if r.kind == "RequestReceived"]
            if "SEND_MESSAGE" in {r.request_name for r in lab.history.records() if r.kind == "RequestReceived"}:
                shown.set()

    async def notebook() -> None:
        with lab.serve() as serving:
            address = f"127.0.0.1:{serving.ports['broker-a']}"
            await asyncio.to_thread(lambda: connect(address).send(b"look"))
            await asyncio.wait_for(shown.wait(), 20)

    view, shown = View(), asyncio.Event()
    lab.watchers.add(view)
    asyncio.run(notebook())
    assert view.threads == {threading.get_ident()}
    assert "RequestReceived" in view.seen
