"""Determinism: a world is a pure function of its code, its seed, and what is done to it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mqlab.sim import FAULTS, Endpoint, Node, World
from mqlab.trace.bus import Row
from mqlab.trace.digest import TraceDigest
from mqlab.trace.events.world import ActionTaken

REPOSITORY = Path(__file__).parents[2]

PROGRAM = """
from mqlab.sim import FAULTS, World
from mqlab.trace.digest import TraceDigest
from mqlab.trace.events.world import ActionTaken

world = World("seven")
digest = TraceDigest()
world.hooks.attach(digest)
nodes = [world.node(name) for name in ("alpha", "beta", "gamma")]

def serve(endpoint):
    def answer(frame):
        nodes[1].hooks.emit(ActionTaken("answered", frame))
        endpoint.send(frame)
    endpoint.on_frame = answer

nodes[1].listen(10911, serve)

async def client(node):
    endpoint = await node.connect("10.0.0.2:10911", 3000)
    endpoint.on_frame = lambda frame: node.hooks.emit(ActionTaken("got", frame))
    pool = node.pool("pool", 2)
    for number in range(50):
        pool.submit(endpoint.send, f"{node.name} {number}", service_us=node.choose("service", 500))
        await node.sleep_us(node.choose("pause", 1000))

for node in (nodes[0], nodes[2]):
    node.spawn(client(node), "client")
world.run_for(20_000)
FAULTS["partition"](world, ["alpha"], ["beta"])
world.run_for(50_000)
FAULTS["unpartition"](world, ["alpha"], ["beta"])
world.run_for(1_000_000)
print(digest.hexdigest(), digest.count)
"""


def hash_in_new_process(hash_seed: str) -> str:
    """The trace hash of the program above, in a process with its own order of string hashes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.strip()


def test_the_same_seed_gives_the_same_trace_in_every_process_whatever_the_hash_seed() -> None:
    assert len({hash_in_new_process(hash_seed) for hash_seed in ("0", "1", "4242")}) == 1


# -- random programs ---------------------------------------------------------------------------------------------------

Operation = tuple[str, int, int]
operations = st.lists(
    st.tuples(
        st.sampled_from(["sleep", "timer", "time-out", "send", "spawn", "job", "choose", "cut", "heal", "break"]),
        st.integers(0, 2),
        st.integers(0, 20),
    ),
    max_size=25,
)


class Player:
    """Plays a random program on three machines that talk to each other, and keeps its trace."""

    def __init__(self, program: list[Operation], seed: int, *, ties: bool, watch: bool = True) -> None:
        self.world = World(seed)
        self.world.tie_is_choice = ties
        self.rows: list[Row] = []
        self.seen: list[tuple[int, str, str]] = []
        if watch:
            self.world.hooks.attach(self.rows.append)
            self.world.hooks.attach(TraceDigest())
        self.nodes = [self.world.node(name) for name in ("alpha", "beta", "gamma")]
        self.pools = [node.pool("pool", 1, capacity=3) for node in self.nodes]
        self.endpoints: dict[int, Endpoint] = {}
        for number, node in enumerate(self.nodes):
            node.listen(1, partial(self.accept, node))
            node.spawn(self.play(number, program), "program")
        self.world.run_for(1_000_000)

    def note(self, node: Node, what: str) -> None:
        """Write down what happens here, and emit an event."""
        self.seen.append((node.now_us(), node.name, what))
        if node.hooks.on:
            node.hooks.emit(ActionTaken(what, node.name))

    def accept(self, node: Node, endpoint: Endpoint) -> None:
        """Send each frame back."""

        def answer(frame: object) -> None:
            self.note(node, f"frame {frame}")
            endpoint.send(frame)

        endpoint.on_frame = answer

    async def play(self, number: int, program: list[Operation]) -> None:
        node = self.nodes[number]
        endpoint = await node.connect(f"10.0.0.{(number + 1) % 3 + 1}:1", 3_000)
        endpoint.on_frame = lambda frame: self.note(node, f"echo {frame}")
        for verb, who, amount in program:
            if who == number:
                await self.do(node, number, endpoint, verb, amount)

    async def do(self, node: Node, number: int, endpoint: Endpoint, verb: str, amount: int) -> None:
        other = self.nodes[(number + 1) % 3].name
        if verb == "sleep":
            await node.sleep(amount)
        elif verb == "timer":
            node.call_later(amount, self.note, node, "timer")
        elif verb == "time-out":
            timer = node.timeout(amount, self.note, node, "time-out")
            if amount % 2:
                timer.cancel()
        elif verb == "send" and endpoint.open:
            endpoint.send(amount)
        elif verb == "spawn":
            node.spawn(self.nap(node, amount), "nap")
        elif verb == "job":
            self.note(node, f"job {self.pools[number].submit(self.note, node, 'job', service_us=amount * 100)}")
        elif verb == "choose":
            self.note(node, f"chose {node.choose('number', amount + 1)}")
        elif verb in ("cut", "heal"):
            FAULTS[verb](self.world, node.name, other)
        elif verb == "break":
            FAULTS["disconnect"](self.world, node.name, other)
        self.note(node, verb)

    async def nap(self, node: Node, amount: int) -> None:
        await node.sleep(amount)
        self.note(node, "nap is over")


@settings(deadline=None, max_examples=60)
@given(operations, st.integers(0, 3), st.booleans())
def test_a_random_program_gives_the_same_trace_twice(program: list[Operation], seed: int, ties: bool) -> None:
    assert Player(program, seed, ties=ties).rows == Player(program, seed, ties=ties).rows


@settings(deadline=None, max_examples=30)
@given(operations)
def test_looking_on_changes_nothing(program: list[Operation]) -> None:
    """A world that many watch from the start plays as one that nobody watches until it is over."""
    watched, alone = Player(program, 1, ties=False), Player(program, 1, ties=False, watch=False)
    assert (watched.world.slice_no, watched.world.now_us) == (alone.world.slice_no, alone.world.now_us)
    assert watched.world.choices.drawn() == alone.world.choices.drawn()
    assert watched.seen == alone.seen


# -- nothing of the machine --------------------------------------------------------------------------------------------

FORBIDDEN = {
    r"^\s*(import random\b|from random\b)": "the random module (use node.choose)",
    r"\btime\.time\(|\btime\.monotonic\(|\btime\.perf_counter\(": "a real clock (use node.now_ms)",
    r"\bdatetime\.now\(|\bdate\.today\(|\butcnow\(": "a real clock (use node.now_ms)",
    r"\bos\.environ\b|\bos\.getenv\(": "the environment",
    r"(?<![\w.])id\(": "the address of an object",
    r"^(?!\s*hash\().*(?<![\w.])hash\(": "the value of Python's hash, which differs between processes",
}
ALLOWED = {("sim/choices.py", r"^\s*(import random\b|from random\b)")}
INSIDE_THE_WORLD = ("sim", "store", "remoting", "broker", "client", "namesrv", "protocol", "rebalance")


@pytest.mark.parametrize("package", INSIDE_THE_WORLD)
def test_nothing_inside_a_world_reads_the_machine_it_runs_on(package: str) -> None:
    found = []
    root = REPOSITORY / "mqlab"
    for path in sorted((root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for pattern, what in FORBIDDEN.items():
                if re.search(pattern, line) and (name, pattern) not in ALLOWED:
                    found.append(f"mqlab/{name}:{number} reads {what}: {line.strip()}")
    assert not found, "\n".join(found)
