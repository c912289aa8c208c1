"""The wire: what is under way between the machines at this moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mqlab.errors import LearnerError, ProtocolError
from mqlab.protocol import RemotingCommand
from mqlab.protocol.codes import code_name
from mqlab.views.labelled_bytes import LabelledBytes
from mqlab.views.layouts import label_frame, label_other_frame, replication_words
from mqlab.views.table import Table


def command_in(frame: Any) -> RemotingCommand | None:
    """The remoting command that a frame is or holds as bytes; None if it is something else, such as HTTP."""
    if isinstance(frame, bytes):
        try:
            return RemotingCommand.decode(frame)
        except ProtocolError:
            return None
    return frame if isinstance(frame, RemotingCommand) else None


class FrameUnderWay(NamedTuple):
    """One frame in flight: between which machines, when it arrives (in us from now), and whether the link is cut."""

    source: str
    target: str
    arrives_us: int
    cut: bool
    frame: Any

    @property
    def command(self) -> RemotingCommand | None:
        """The remoting command in it; None if it holds something else."""
        return command_in(self.frame)

    @property
    def data(self) -> bytes:
        """Its bytes on the wire."""
        return bytes(self.frame if isinstance(self.frame, bytes) else self.frame.encode())

    @property
    def says(self) -> str:
        """The name of the request, or of the answer; what a master and its slave say; of all else the first line."""
        command = self.command
        if command is None:
            first_line = self.data.partition(b"\r\n")[0][:40].decode("ascii", "backslashreplace")
            return replication_words(self.data) or first_line
        name = code_name(command.code, command.is_response)
        return f"response {name}" if command.is_response else f"request {name}"


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
        return self.frames[n].data

    def frame(self, n: int = 0) -> LabelledBytes:
        """The n-th frame, every byte labelled."""
        data = self.frame_bytes(n)
        return label_other_frame(data) if self.frames[n].command is None else label_frame(data)

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
