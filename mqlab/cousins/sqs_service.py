"""The service around a queue of SQS, and a client of it.

What is simpler here than at Amazon: the service is one process, and all that it knows is safe on its disk before it
answers. Amazon keeps copies on several servers and says little about them; this is what a customer sees of a service
that forgets nothing while one of its servers is away. Times of visibility go on while the process is down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mqlab.cousins.calls import CallClient, CallRefused, CallServer, Handler
from mqlab.cousins.sqs_queue import VISIBILITY_TIMEOUT_S, Received, SqsError, SqsQueue
from mqlab.sim import public_call
from mqlab.trace.events.cousins import (
    SqsMessageDeleted,
    SqsMessageReceived,
    SqsMessageRedriven,
    SqsMessageSent,
    SqsVisibilityChanged,
)

if TYPE_CHECKING:
    from mqlab.sim import Node, Transport

Work = Callable[[dict[str, Any]], Any]
PORT = 443
FILE = "queue.json"


class SqsService:
    """One queue, as the program of a node."""

    def __init__(self, node: Node, name: str, queue: SqsQueue) -> None:
        self.node = node
        self.name = name
        self.queue = queue
        if node.disk.exists(FILE):
            queue.load(json.loads(node.disk.read_bytes(FILE)))

    def start(self) -> None:
        """Answer from now on."""
        work: dict[str, Work] = {
            "SendMessage": self._send,
            "ReceiveMessage": self._receive,
            "DeleteMessage": self._delete,
            "ChangeMessageVisibility": self._change,
        }
        CallServer(self.node, PORT, {name: _safely(self, do) for name, do in work.items()}, lambda transport: None)

    def save(self) -> None:
        """Make all of it safe."""
        self.node.disk.write_bytes(FILE, json.dumps(self.queue.as_json()).encode(), flush=True)

    def _send(self, arguments: dict[str, Any]) -> str:
        message_id = self.queue.send(arguments["body"])
        if self.node.hooks.on:
            self.node.hooks.emit(SqsMessageSent(self.name, message_id, arguments["body"]))
        return message_id

    def _receive(self, arguments: dict[str, Any]) -> list[Received]:
        dead, visibility_s = len(self.queue.dead_letters), arguments["visibility_s"]
        received = self.queue.receive(arguments["most"], self.node.now_ms(), visibility_s)
        if self.node.hooks.on:
            for message in self.queue.dead_letters[dead:]:
                self.node.hooks.emit(
                    SqsMessageRedriven(self.name, message.message_id, message.receive_count, f"{self.name}-dead")
                )
            for message_id, _, handle, count in received:
                self.node.hooks.emit(
                    SqsMessageReceived(self.name, message_id, count, visibility_s * 1_000, handle)
                )
        return received

    def _delete(self, arguments: dict[str, Any]) -> bool:
        handle = arguments["receipt_handle"]
        deleted = self.queue.delete(handle)
        if self.node.hooks.on:
            self.node.hooks.emit(SqsMessageDeleted(self.name, handle.partition("/")[0], handle, deleted))
        return True

    def _change(self, arguments: dict[str, Any]) -> bool:
        visibility_s = arguments["visibility_s"]
        message_id = self.queue.change_visibility(arguments["receipt_handle"], visibility_s, self.node.now_ms())
        if self.node.hooks.on:
            self.node.hooks.emit(SqsVisibilityChanged(self.name, message_id, visibility_s * 1_000))
        return True


def _safely(service: SqsService, work: Work) -> Handler:
    """A handler that saves the queue before it answers."""

    def handle(transport: Transport, arguments: dict[str, Any]) -> Any:
        try:
            answer = work(arguments)
        except SqsError as error:
            raise CallRefused(error.code, str(error)) from error
        service.save()
        return answer

    return handle


class SqsClient:
    """A program that uses the queue. Its calls raise CallRefused with the name of SQS's error."""

    call_name = "client"

    def __init__(self, node: Node, address: str) -> None:
        self.node = node
        self._client = CallClient(node, address)

    @public_call
    async def send_message(self, body: str) -> str:
        """Store a message; its id."""
        message_id: str = await self._client.call("SendMessage", body=body)
        return message_id

    @public_call
    async def receive_message(self, most: int = 1, visibility_s: int = VISIBILITY_TIMEOUT_S) -> list[Received]:
        """Up to `most` messages, hidden from everybody else for so long."""
        received = await self._client.call("ReceiveMessage", most=most, visibility_s=visibility_s)
        return [Received(*one) for one in received]

    @public_call
    async def delete_message(self, receipt_handle: str) -> None:
        """Delete a message. That nothing was deleted, since the handle is old, is not told."""
        await self._client.call("DeleteMessage", receipt_handle=receipt_handle)

    @public_call
    async def change_message_visibility(self, receipt_handle: str, visibility_s: int) -> None:
        """Let a message in flight be hidden for so long from now on."""
        await self._client.call("ChangeMessageVisibility", receipt_handle=receipt_handle, visibility_s=visibility_s)
