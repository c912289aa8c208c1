"""How soon one can begin: the import, and the first message after it, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median

from benchmarks.harness import ROUNDS, Figure, figure

IMPORT = """
import time
began = time.process_time()
import mqlab
from mqlab import Lab, Message
print((time.process_time() - began) * 1000)
"""

FIRST_MESSAGE = """
import time
from mqlab import Lab, Message
began = time.process_time()
lab = Lab(seed=7)
lab.name_server()
lab.broker("broker-a")
producer = lab.producer("orders")
lab.run(producer.start())
lab.run(producer.send(Message("TopicTest", b"hello", tags="TagA")))
print((time.process_time() - began) * 1000)
"""


def milliseconds_of(program: str) -> float:
    """What a program prints, the median of five new processes; one run before them writes the compiled files.

    Compiled files are what anybody has from the second start on, so a setting that forbids them is left out.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    printed = [
        float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
        for _ in range(ROUNDS + 1)
    ]
    return median(printed[1:])


def import_mqlab() -> Figure:
    """The time of the import, with the names of the first cell."""
    return figure("import mqlab", milliseconds_of(IMPORT), "ms", aim=100, better="lower")


def first_message() -> Figure:
    """The time from the end of the import to the answer to the first message, with all that must be started for it."""
    return figure("first message after import", milliseconds_of(FIRST_MESSAGE), "ms", aim=50, better="lower")
