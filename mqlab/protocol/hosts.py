"""The address of a host as RocketMQ stores it: 4 or 16 bytes of IP, then the port in 4 bytes.

As text an address is `ip:port`, in Java's spelling: an IPv6 address is eight groups of digits without the short form
`::`, and has no brackets around it, as in `0:0:0:0:0:0:0:1:10911`.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from mqlab.errors import LearnerError


@lru_cache(maxsize=16384)
def encode_host(host: str) -> bytes:
    """8 bytes for an IPv4 address with its port, 20 for an IPv6 one."""
    ip, _, port = host.rpartition(":")
    if not port.isascii() or not port.isdigit() or int(port) > 0xFFFFFFFF:
        raise LearnerError(f"{host!r} is not an address", "write it as ip:port, for example 10.0.0.2:10911")
    return ip_bytes(ip) + int(port).to_bytes(4, "big")


@lru_cache(maxsize=16384)
def decode_host(stored: bytes) -> str:
    """The text of 8 or 20 stored bytes."""
    return f"{ip_text(stored[:-4])}:{int.from_bytes(stored[-4:], 'big', signed=True)}"


def ip_bytes(ip: str) -> bytes:
    """The 4 or 16 bytes of an IP address; brackets around an IPv6 address are taken off."""
    text = ip[1:-1] if ip.startswith("[") and ip.endswith("]") else ip
    try:
        return IPv6Address(text).packed if ":" in text else IPv4Address(text).packed
    except AddressValueError as problem:
        hint = "write it as 10.0.0.2 or as 2001:db8::1"
        raise LearnerError(f"{ip!r} is not an IP address: {problem}", hint) from None


def ip_text(packed: bytes) -> str:
    """The text of 4 or 16 bytes, spelled as Java does."""
    if len(packed) == 4:
        return ".".join(map(str, packed))
    return ":".join(f"{packed[i] << 8 | packed[i + 1]:x}" for i in range(0, 16, 2))


def is_ipv6(host: str) -> bool:
    """Whether an address `ip:port` is an IPv6 one."""
    return len(encode_host(host)) == 20
