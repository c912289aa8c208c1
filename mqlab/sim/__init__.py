"""The world: one clock, one agenda, nodes, network, disk, pools and faults.

A component needs `Node`, `ServiceThread`, `Future`, the queue, semaphore and lock of `sync`, and `public_call`.
"""

from mqlab.sim.call import Call, public_call
from mqlab.sim.choices import Choices, Drawn
from mqlab.sim.connecting import ConnectionRefused, ConnectTimeout
from mqlab.sim.disk import DiskFull, MemoryDisk, used_share
from mqlab.sim.door import InterruptedInSlice
from mqlab.sim.faults import FAULTS, ROOM_BYTES
from mqlab.sim.future import Future
from mqlab.sim.life import Life
from mqlab.sim.link import LinkSpec
from mqlab.sim.network import Endpoint, Network
from mqlab.sim.node import Node, NodeSpec, PeriodicTask, WaitTimeout
from mqlab.sim.pending import Pending
from mqlab.sim.pool import Pool, PoolJob
from mqlab.sim.service import ServiceThread
from mqlab.sim.sync import Lock, Queue, Semaphore
from mqlab.sim.task import Cancelled, Task
from mqlab.sim.timer import Timer
from mqlab.sim.transport import EndpointClosed, Transport
from mqlab.sim.traps import park, sleep_us
from mqlab.sim.world import EPOCH_MS, WAIT_LIMIT_MS, World

__all__ = [
    "EPOCH_MS",
    "FAULTS",
    "ROOM_BYTES",
    "WAIT_LIMIT_MS",
    "Call",
    "Cancelled",
    "Choices",
    "ConnectTimeout",
    "ConnectionRefused",
    "DiskFull",
    "Drawn",
    "Endpoint",
    "EndpointClosed",
    "Future",
    "InterruptedInSlice",
    "Life",
    "LinkSpec",
    "Lock",
    "MemoryDisk",
    "Network",
    "Node",
    "NodeSpec",
    "Pending",
    "PeriodicTask",
    "Pool",
    "PoolJob",
    "Queue",
    "Semaphore",
    "ServiceThread",
    "Task",
    "Timer",
    "Transport",
    "WaitTimeout",
    "World",
    "park",
    "public_call",
    "sleep_us",
    "used_share",
]
