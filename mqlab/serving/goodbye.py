"""What a client is told that still asks while the serving ends: to go elsewhere."""

from __future__ import annotations

from mqlab.protocol.codes import V5_3_1, ResponseCode
from mqlab.protocol.command import RemotingCommand
from mqlab.remoting.frame_reader import FrameReader


class Goodbye:
    """Answers GO_AWAY to the requests of one connection from now on, so that none of them is begun.

    Clients of versions after 5.3.1 understand it: they try another broker. What older ones ask, and what a client
    answers, goes on to the world. One-way requests of the former are dropped.

    Java: org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.processRequestCommand (isShuttingDown).
    """

    def __init__(self, begun: bytes) -> None:
        self._frames = FrameReader()
        self._frames.receive_data(begun)
        self._handed_on_bytes = len(begun)
        """How much of the frame that has not come to its end the world has already."""

    def hear(self, data: bytes) -> tuple[bytes, bytes]:
        """Take in what the client says: what of it is for the world, and what the client is answered."""
        for_world, for_client = bytearray(), bytearray()
        self._frames.receive_data(data)
        while (frame := self._frames.next_frame()) is not None:
            rest, self._handed_on_bytes = frame[self._handed_on_bytes :], 0
            command = RemotingCommand.decode(frame) if len(rest) == len(frame) else None
            if command is None or command.is_response or command.version <= V5_3_1:
                for_world += rest
            elif not command.is_oneway:
                answer = RemotingCommand.response(ResponseCode.GO_AWAY, "please go away")
                answer.opaque = command.opaque
                for_client += answer.encode()
        return bytes(for_world), bytes(for_client)
