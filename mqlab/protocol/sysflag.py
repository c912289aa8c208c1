"""The bits of RocketMQ's flag words: of a message, of a pull request, of a topic, and the permission bits.

Java: org.apache.rocketmq.common.sysflag.MessageSysFlag, PullSysFlag, TopicSysFlag and
org.apache.rocketmq.common.constant.PermName. The Java classes are bags of static methods; so are these.
"""

from __future__ import annotations


class MessageSysFlag:
    """What the system knows of a message: compression, transaction state, address widths, inner batch."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    TRANSACTION_NOT_TYPE = 0
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_COMMIT = 0x8
    TRANSACTION_ROLLBACK = 0xC
    BORNHOST_V6 = 0x10
    STOREHOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    COMPRESSION_LZ4 = 0x100
    COMPRESSION_ZSTD = 0x200
    COMPRESSION_ZLIB = 0x300
    COMPRESSION_MASK = 0x700

    @staticmethod
    def transaction_value(flag: int) -> int:
        """Only the transaction bits: 0 none, 4 prepared, 8 commit, 12 rollback."""
        return flag & 0xC

    @staticmethod
    def reset_transaction_value(flag: int, transaction: int) -> int:
        """The flag with its transaction bits replaced."""
        return flag & ~0xC | transaction

    @staticmethod
    def clear_compressed(flag: int) -> int:
        """The flag of a message whose body has been unpacked; the type bits stay, as in RocketMQ."""
        return flag & ~0x1

    @staticmethod
    def is_compressed(flag: int) -> bool:
        """Whether the body is packed."""
        return flag & 0x1 != 0

    @staticmethod
    def compression_name(flag: int) -> str:
        """ "ZLIB", "LZ4" or "ZSTD"; old senders set no type bits and mean ZLIB."""
        return {0x100: "LZ4", 0x200: "ZSTD"}.get(flag & 0x700, "ZLIB")

    @staticmethod
    def check(flag: int, bits: int) -> bool:
        """Whether all of the bits are set."""
        return flag & bits == bits


class PullSysFlag:
    """What a pull request asks the broker to do besides reading.

    Java: org.apache.rocketmq.common.sysflag.PullSysFlag.
    """

    COMMIT_OFFSET = 0x1
    SUSPEND = 0x2
    SUBSCRIPTION = 0x4
    CLASS_FILTER = 0x8
    LITE_PULL_MESSAGE = 0x10

    @staticmethod
    def build(
        commit_offset: bool, suspend: bool, subscription: bool, class_filter: bool = False, lite_pull: bool = False
    ) -> int:
        """The flag word of a pull request."""
        return commit_offset | suspend << 1 | subscription << 2 | class_filter << 3 | lite_pull << 4

    @staticmethod
    def has_commit_offset(flag: int) -> bool:
        """Whether the request carries an offset to commit."""
        return flag & 0x1 != 0

    @staticmethod
    def has_suspend(flag: int) -> bool:
        """Whether the broker may hold the request while there is nothing to read."""
        return flag & 0x2 != 0

    @staticmethod
    def has_subscription(flag: int) -> bool:
        """Whether the request carries its subscription."""
        return flag & 0x4 != 0

    @staticmethod
    def has_class_filter(flag: int) -> bool:
        """Whether a filter class, which RocketMQ 5 has no more, should choose the messages."""
        return flag & 0x8 != 0

    @staticmethod
    def has_lite_pull(flag: int) -> bool:
        """Whether a lite pull consumer asks."""
        return flag & 0x10 != 0

    @staticmethod
    def clear_commit_offset(flag: int) -> int:
        """The flag word without the offset to commit."""
        return flag & ~0x1

    @staticmethod
    def clear_suspend(flag: int) -> int:
        """The flag word of a request that wants its answer at once."""
        return flag & ~0x2


class TopicSysFlag:
    """Whether a topic belongs to a unit, a deployment that RocketMQ's makers use and that is off everywhere else."""

    UNIT = 0x1
    UNIT_SUB = 0x2

    @staticmethod
    def build(unit: bool, has_unit_sub: bool) -> int:
        """The flag word of a topic."""
        return unit | has_unit_sub << 1

    @staticmethod
    def has_unit(flag: int) -> bool:
        """Whether the topic belongs to a unit."""
        return flag & 0x1 != 0

    @staticmethod
    def has_unit_sub(flag: int) -> bool:
        """Whether a group of a unit subscribes to the topic."""
        return flag & 0x2 != 0


class PermName:
    """Who may do what with a topic: read, write, and hand its settings down to topics made by themselves."""

    INHERIT = 0x1
    WRITE = 0x2
    READ = 0x4
    READ_WRITE = READ | WRITE
    PRIORITY = 0x8

    @staticmethod
    def text(perm: int) -> str:
        """Three letters, as in `RW-` or `R-X`."""
        return ("R" if perm & 0x4 else "-") + ("W" if perm & 0x2 else "-") + ("X" if perm & 0x1 else "-")

    @staticmethod
    def is_readable(perm: int) -> bool:
        """Whether messages may be read."""
        return perm & 0x4 != 0

    @staticmethod
    def is_writeable(perm: int) -> bool:
        """Whether messages may be written."""
        return perm & 0x2 != 0

    @staticmethod
    def is_inherited(perm: int) -> bool:
        """Whether topics that are made by themselves take over the settings."""
        return perm & 0x1 != 0

    @staticmethod
    def is_accessible(perm: int) -> bool:
        """Whether the topic can be read or written at all."""
        return perm & 0x6 != 0
