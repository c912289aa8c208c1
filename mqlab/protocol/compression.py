"""Packing and unpacking message bodies: ZLIB, LZ4 and ZSTD.

Java: org.apache.rocketmq.common.compression.ZlibCompressor, Lz4Compressor, ZstdCompressor. ZLIB is deflate with the
zlib wrapper, LZ4 the frame format, ZSTD its usual frames. ZLIB is part of Python; the other two come with the extra
`codecs`. A producer packs bodies of 4096 bytes and more, at level 5, and says so in the message's sys flag; the broker
stores what it gets, and the consumer unpacks.
"""

from __future__ import annotations

import zlib
from typing import Any

from mqlab.errors import MissingExtraError
from mqlab.protocol.errors import CompressionError
from mqlab.protocol.sysflag import MessageSysFlag

ZLIB = "ZLIB"
LZ4 = "LZ4"
ZSTD = "ZSTD"

DEFAULT_LEVEL = 5
COMPRESS_OVER_BYTES = 4096
"""A producer packs a body of this length or more (compressMsgBodyOverHowmuch)."""

_FLAGS = {
    ZLIB: MessageSysFlag.COMPRESSION_ZLIB,
    LZ4: MessageSysFlag.COMPRESSION_LZ4,
    ZSTD: MessageSysFlag.COMPRESSION_ZSTD,
}


def compression_flag(kind: str) -> int:
    """The bits that name the kind in a sys flag; the bit that says "compressed" is not among them."""
    return _FLAGS[kind]


def compress(kind: str, data: bytes, level: int = DEFAULT_LEVEL) -> bytes:
    """The packed body; MissingExtraError when the package for the kind is not installed."""
    if kind == ZLIB:
        return zlib.compress(data, level)
    if kind == LZ4:
        return _compress_lz4(data)
    if kind == ZSTD:
        return _compress_zstd(data, level)
    raise CompressionError(kind, "the kinds are ZLIB, LZ4 and ZSTD")


def _compress_lz4(data: bytes) -> bytes:
    frame = _lz4_frame()
    # Without a source size the frame names blocks of 4 MB also for a small body, as Java's LZ4FrameOutputStream does.
    packer = frame.LZ4FrameCompressor(block_size=frame.BLOCKSIZE_MAX4MB, block_linked=False)
    packed: bytes = packer.begin() + packer.compress(data) + packer.flush()
    return packed


def _compress_zstd(data: bytes, level: int) -> bytes:
    package = _zstandard()
    # A stream of unknown length, flushed once before its end: so does Java, and it shows in the bytes.
    packer = package.ZstdCompressor(level=level, write_content_size=False).compressobj()
    packed: bytes = packer.compress(data) + packer.flush(package.COMPRESSOBJ_FLUSH_BLOCK) + packer.flush()
    return packed


def decompress(sys_flag: int, data: bytes) -> bytes:
    """The unpacked body; which way it was packed stands in the sys flag."""
    kind = MessageSysFlag.compression_name(sys_flag)
    try:
        if kind == LZ4:
            frame = _lz4_frame()
            unpacked: bytes = frame.decompress(data)
        elif kind == ZSTD:
            unpacker = _zstandard().ZstdDecompressor().decompressobj()
            unpacked = unpacker.decompress(data)
            if not unpacker.eof:
                raise CompressionError(kind, "it ends too early")
        else:
            unpacked = zlib.decompress(data)
    except (MissingExtraError, CompressionError):
        raise
    except Exception as problem:
        # Each of the three packages has errors of its own, and lz4 raises plain RuntimeError.
        raise CompressionError(kind, str(problem)) from problem
    return unpacked


def _lz4_frame() -> Any:
    try:
        import lz4.frame
    except ImportError:
        raise MissingExtraError("lz4", "codecs") from None
    return lz4.frame


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("zstandard", "codecs") from None
    return zstandard
