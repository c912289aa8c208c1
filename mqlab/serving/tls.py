"""TLS at the ports of a served world: who may speak it, and with which certificate.

As in RocketMQ one port takes both, and the first byte of a connection tells which it is
(org.apache.rocketmq.remoting.netty.NettyRemotingServer, TlsModeHandler). The world sees the plain bytes.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path, PurePath
from typing import NamedTuple

from mqlab.errors import LearnerError, MissingExtraError

DISABLED, PERMISSIVE, ENFORCING = "disabled", "permissive", "enforcing"
MODES = (DISABLED, PERMISSIVE, ENFORCING)
"""The values of tls.server.mode (org.apache.rocketmq.remoting.common.TlsMode)."""

FIRST_BYTE = 0x16
"""A record of TLS with a handshake in it; no frame of remoting and no HTTP/2 begins so."""

HANDSHAKE_SECONDS = 10.0
"""So long a handshake may take (io.netty.handler.ssl.SslHandler)."""

NAMES = ("localhost", "127.0.0.1", "::1")
"""Whom a certificate of our own making is for. Clients cannot verify it, as in RocketMQ's test mode."""


class Certificate(NamedTuple):
    """A certificate as both servers want it."""

    key: bytes
    """The private key, in PEM."""
    chain: bytes
    """The certificate and those that it hangs on, in PEM."""
    context: ssl.SSLContext
    """The same for Python's ssl."""


class Tls:
    """The mode, and the certificate: the one in two files (PEM), or one that is made when it is first needed.

    LearnerError for a mode that is none, for half a pair, for files that are none, and where TLS is enforced without a
    certificate to be had.
    """

    def __init__(self, mode: str, certificate: str | PurePath | None, key: str | PurePath | None) -> None:
        if mode not in MODES:
            raise LearnerError(f"there is no TLS mode {mode!r}", f"choose among {', '.join(MODES)}")
        self.mode = mode
        self._certificate: Certificate | None = None
        self._is_impossible = False
        if certificate is not None and key is not None:
            self._certificate = _read(Path(certificate), Path(key))
        elif certificate is not None or key is not None:
            given, missing = ("certificate", "key") if key is None else ("key", "certificate")
            raise LearnerError(f"TLS was given a {given} and no {missing}", "give both, or neither")
        elif mode == ENFORCING:
            try:
                self.certificate()
            except MissingExtraError as error:
                raise LearnerError(
                    f"TLS is enforced, and there is no certificate: to make one, {error.message}",
                    f"{error.hint}; or give a certificate and its key",
                ) from None

    def certificate(self) -> Certificate:
        """The certificate; MissingExtraError where it cannot be made."""
        if self._certificate is None:
            self._certificate = _make()
        return self._certificate

    def admits(self, is_tls: bool) -> bool:
        """Whether a connection that begins so may go on; where only a certificate is missing this is said, once."""
        if not is_tls:
            return self.mode != ENFORCING
        if self.mode == DISABLED or self._is_impossible:
            return False
        try:
            self.certificate()
        except MissingExtraError as error:
            self._is_impossible = True
            print(
                f"mqlab serve: a client that wants TLS is refused, since to make a certificate {error.message} "
                f"({error.hint}; or give a certificate and its key; or tell the client to speak without TLS)",
                file=sys.stderr,
                flush=True,
            )
            return False
        return True


def _read(certificate: Path, key: Path) -> Certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a password here one would be asked for at the terminal.
        context.load_cert_chain(certificate, key, password="")
        return Certificate(key.read_bytes(), certificate.read_bytes(), context)
    except OSError as error:
        raise LearnerError(
            f"TLS cannot use the certificate {certificate} with the key {key}: {error}",
            "give two files in PEM: a certificate with its chain, and its private key without a password",
        ) from None


def _make() -> Certificate:
    try:
        import trustme
    except ImportError:
        raise MissingExtraError("trustme", "serve") from None
    made = trustme.CA().issue_cert(*NAMES)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.configure_cert(context)
    return Certificate(made.private_key_pem.bytes(), b"".join(pem.bytes() for pem in made.cert_chain_pems), context)
