"""The world: one clock, one agenda, nodes, network, disk, pools and faults.

A component needs `Node`, `ServiceThread`, `Future`, the queue, semaphore and lock of `sync`, and `public_call`.
"""

from .call import Call, public_call
from .choices import Choices, Drawn
from .connecting import ConnectionRefused, ConnectTimeout
from .disk import DiskFull, MemoryDisk
from .door import InterruptedInSlice
from .faults import FAULTS
from .future import Future
from .life import Life
from .link import LinkSpec
from .network import Endpoint, EndpointClosed, Network
from .node import Node, NodeSpec, PeriodicTask, WaitTimeout
from .pending import Pending
from .pool import Pool, PoolJob
from .service import ServiceThread
from .sync import Lock, Queue, Semaphore
from .task import Cancelled, Task
from .timer import Timer
from .traps import park, sleep_us
from .world import EPOCH_MS, WAIT_LIMIT_MS, World

__all__ = [
    "EPOCH_MS",
    "FAULTS",
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
    "WaitTimeout",
    "World",
    "park",
    "public_call",
    "sleep_us",
]
