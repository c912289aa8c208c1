"""The wire: what is under way between the machines at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..errors import LearnerError
from ..protocol import RemotingCommand
from ..protocol.codes import code_name
from .labelled_bytes import LabelledBytes
from .layouts import label_frame
from .table import Table


class FrameUnderWay(NamedTuple):
    """One frame in flight: between which machines, when it arrives (in us from now), and whether the link is cut."""

    source: str
    target: str
    arrives_us: int
    cut: bool
    command: RemotingCommand

    @property
    def says(self) -> str:
        """The name of the request, or of the answer."""
        is_response = bool(self.command.flag & 1)
        name = code_name(self.command.code, is_response)
        return f"response {name}" if is_response else f"request {name}"


class Wire:
    """The frames that are under way, in the order in which they arrive; `frame(n)` labels the bytes of one."""

    def __init__(self, now_ms: float, frames: Sequence[FrameUnderWay]) -> None:
        self.now_ms = now_ms
        self.frames = list(frames)

    def __len__(self) -> int:
        return len(self.frames)

    def frame_bytes(self, n: int = 0) -> bytes:
        """The n-th frame as its bytes on the wire. LearnerError if no so many are under way."""
        if not isinstance(n, int) or not 0 <= n < len(self.frames):
            under_way = f"{len(self)} frames are" if len(self) != 1 else "1 frame is"
            raise LearnerError(
                f"there is no frame {n!r}: {under_way} under way",
                "stop where one is: lab.run_until_event('RequestSent')",
            )
        return bytes(self.frames[n].command.encode())

    def frame(self, n: int = 0) -> LabelledBytes:
        """The n-th frame, every byte labelled."""
        return label_frame(self.frame_bytes(n))

    def _table(self) -> Table:
        rows = [
            (
                frame.source,
                frame.target,
                frame.says,
                len(self.frame_bytes(n)),
                "link is cut" if frame.cut else f"{frame.arrives_us / 1_000:.3f}",
            )
            for n, frame in enumerate(self.frames)
        ]
        title = f"under way at {self.now_ms:.3f} ms"
        return Table(title, ("from", "to", "frame", "bytes", "arrives in ms"), rows)

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()
