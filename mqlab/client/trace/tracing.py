"""Switching the message trace on for a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mqlab.client.trace.async_trace_dispatcher import (
    CONSUME,
    PRODUCE,
    AsyncTraceDispatcher,
    TraceProducer,
    trace_producer_settings,
)
from mqlab.client.trace.trace_hooks import (
    ConsumeMessageTraceHookImpl,
    EndTransactionTraceHookImpl,
    SendMessageTraceHookImpl,
)

if TYPE_CHECKING:
    from mqlab.client.client_config import ClientConfig
    from mqlab.sim import Node

MakeProducer = Callable[..., TraceProducer]
"""The class of the producer that sends traces: DefaultMQProducer."""


def trace_sends(
    node: Node, config: ClientConfig, group: str, make_producer: MakeProducer
) -> tuple[AsyncTraceDispatcher, SendMessageTraceHookImpl, EndTransactionTraceHookImpl]:
    """What a producer is traced with: a dispatcher, which is to be started, and the hooks that note its sends and the
    ends of its transactions.
    """
    dispatcher = _dispatcher(node, config, group, PRODUCE, make_producer)
    return dispatcher, SendMessageTraceHookImpl(dispatcher), EndTransactionTraceHookImpl(dispatcher)


def trace_consumption(
    node: Node, config: ClientConfig, group: str, make_producer: MakeProducer
) -> tuple[AsyncTraceDispatcher, ConsumeMessageTraceHookImpl]:
    """The same for what a consumer consumes."""
    dispatcher = _dispatcher(node, config, group, CONSUME, make_producer)
    return dispatcher, ConsumeMessageTraceHookImpl(dispatcher)


def _dispatcher(
    node: Node, config: ClientConfig, group: str, kind: str, make_producer: MakeProducer
) -> AsyncTraceDispatcher:
    trace_group, settings = trace_producer_settings(node, config, group, kind)
    return AsyncTraceDispatcher(config, group, make_producer(node, trace_group, **settings))
