"""How many timer messages wait for each topic, in a file beside the check file."""

from __future__ import annotations

from typing import Any

from mqlab.errors import ProtocolError
from mqlab.protocol import fastjson
from mqlab.protocol.errors import BodyError
from mqlab.protocol.topic_config import DataVersion
from mqlab.sim.disk import Disk


class TimerMetrics:
    """Counts per topic (org.apache.rocketmq.store.timer.TimerMetrics), kept in config/timermetrics.

    Differs from RocketMQ: the counts by time of delivery, which it makes when it starts and never reads, are left out,
    and so is the check of 5 o'clock in the morning, which counts small topics again.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._written = b""
        self.data_version = DataVersion()
        self.timing_count: dict[str, tuple[int, int]] = {}
        """Topic -> how many wait, and when that last changed, ms."""

    def load(self) -> None:
        """Read the file, else the one beside it; a file that cannot be read counts nothing."""
        for path in (self._path, f"{self._path}.bak"):
            if self._disk.exists(path) and not self._disk.is_dir(path):
                data = self._disk.read_bytes(path)
                try:
                    value = fastjson.loads(data.decode("utf-8"))
                    self._decode(value)
                except (ValueError, KeyError, TypeError, AttributeError, ProtocolError):
                    continue
                self._written = data
                return

    def _decode(self, value: dict[str, Any]) -> None:
        version = DataVersion.from_json(value["dataVersion"])
        counts = value["timingCount"]
        self.timing_count = {topic: (int(row["count"]), int(row["timeStamp"])) for topic, row in counts.items()}
        self.data_version = version

    def replace(self, body: bytes) -> int:
        """Take over what a master has counted, as a slave does; of how many topics that is. BodyError if it is nothing
        of that kind.
        """
        try:
            self._decode(fastjson.loads(body.decode("utf-8")))
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise BodyError("TimerMetrics", str(problem)) from None
        return len(self.timing_count)

    def add(self, topic: str, value: int, now_ms: int) -> None:
        """So many more wait for a topic."""
        count, _ = self.timing_count.get(topic, (0, 0))
        self.timing_count[topic] = count + value, now_ms
        self.data_version.next_version(now_ms)

    def remove(self, topic: str) -> None:
        """Forget a topic that was deleted."""
        self.timing_count.pop(topic, None)

    def encode(self) -> bytes:
        """The content of the file, and what administrators are answered."""
        table = {topic: {"count": count, "timeStamp": at} for topic, (count, at) in self.timing_count.items()}
        return fastjson.dumps({"dataVersion": self.data_version.to_json(), "timingCount": table}).encode()

    def persist(self) -> None:
        """Write the file if it says something else, and keep the old one beside it; DiskFull without room."""
        data = self.encode()
        if data != self._written and self.data_version.counter:
            if self._disk.exists(self._path):
                self._disk.write_bytes(f"{self._path}.bak", self._disk.read_bytes(self._path), flush=True)
            self._disk.write_bytes(self._path, data, flush=True)
            self._written = data
