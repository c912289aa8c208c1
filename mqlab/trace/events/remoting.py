"""Events of remoting: requests and responses as they are written and read, and the ways in which a call can fail.

A frame is the same frame on both sides: `connection` is one number for both, `frame` counts the frames of one direction
from 1, and `local` of the sender is `remote` of the receiver. `opaque` ties a response to its request.
"""

from __future__ import annotations

from typing import NamedTuple


class RequestSent(NamedTuple):
    """A request was written to a connection."""

    connection: int
    frame: int
    local: str
    remote: str
    opaque: int
    request_code: int
    request_name: str
    oneway: bool
    body_bytes: int


class RequestReceived(NamedTuple):
    """A request was read from a connection."""

    connection: int
    frame: int
    local: str
    remote: str
    opaque: int
    request_code: int
    request_name: str
    oneway: bool
    body_bytes: int


class ResponseSent(NamedTuple):
    """A response was written to a connection."""

    connection: int
    frame: int
    local: str
    remote: str
    opaque: int
    response_code: int
    response_name: str
    body_bytes: int


class ResponseReceived(NamedTuple):
    """A response was read from a connection."""

    connection: int
    frame: int
    local: str
    remote: str
    opaque: int
    response_code: int
    response_name: str
    body_bytes: int


class ResponseDropped(NamedTuple):
    """A response came for which nobody waits any more: its request has timed out and was forgotten."""

    connection: int
    remote: str
    opaque: int
    response_code: int


class RequestTimedOut(NamedTuple):
    """A request waits no longer: its caller gave up, or (`expired_by_scan`) the scan of the response table found it."""

    connection: int
    remote: str
    opaque: int
    request_code: int
    timeout_ms: int
    expired_by_scan: bool


class RequestFailed(NamedTuple):
    """A request could not be sent, or its connection ended before the answer came."""

    connection: int
    remote: str
    opaque: int
    request_code: int
    reason: str


class RequestRefused(NamedTuple):
    """A server refused a request before any processor saw it; `reason` is the remark of its answer."""

    connection: int
    remote: str
    opaque: int
    request_code: int
    response_code: int
    reason: str


class ProcessorFailed(NamedTuple):
    """A processor raised an error while it worked on a request; the caller gets it as SYSTEM_ERROR."""

    remote: str
    opaque: int
    request_code: int
    reason: str


class NameServerChosen(NamedTuple):
    """A client chose the name server that it will ask from now on; `previous` is empty at the first choice."""

    previous: str
    chosen: str


class ChannelIdle(NamedTuple):
    """Nothing was read or written on a connection for so long that it is closed."""

    connection: int
    local: str
    remote: str
    idle_ms: int


class FrameRefused(NamedTuple):
    """The bytes that came are not a remoting command: the connection is closed."""

    connection: int
    frame: int
    local: str
    remote: str
    reason: str
