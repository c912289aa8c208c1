"""The system calls that a confined process may not make: a filter for Linux's seccomp, a program of classic BPF.

What is refused reaches behind a mount namespace or behind what is counted: making namespaces and mounts, looking into
other processes, keys, clocks, tracing, memory that belongs to no process (`memfd_create`, System V, larger buffers of
sockets), and sockets of other families than the few that Python and Java use (a virtual machine's `AF_VSOCK` leads to
its host). So are locks, leases and watches of files: a file of this machine is the same one in each confined process,
though none can write it, so that two of them could talk, and a lease makes others wait. Calls that are newer than this
table do not exist for such a process.
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Iterator

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""As seccomp.h names them, and the column of the table."""
_REFUSED = {
    "_sysctl": (156, -1), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112), "delete_module": (176, 106),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "flock": (73, 32), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_mempolicy": (239, 236),
    "init_module": (175, 105), "inotify_init": (253, -1), "inotify_init1": (294, 26),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, -1),
    "iopl": (172, -1), "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104),
    "keyctl": (250, 219), "lookup_dcookie": (212, 18), "mbind": (237, 235), "memfd_create": (319, 279),
    "memfd_secret": (447, 447), "migrate_pages": (256, 238), "modify_ldt": (154, -1), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239), "mq_open": (240, 180),
    "msgget": (68, 186), "name_to_handle_at": (303, 264), "nfsservctl": (180, 42), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "reboot": (169, 142), "request_key": (249, 218), "semget": (64, 190),
    "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450), "setdomainname": (171, 162),
    "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170), "shmget": (29, 194),
    "swapoff": (168, 225), "swapon": (167, 224), "sysfs": (139, -1), "syslog": (103, 116), "umount2": (166, 39),
    "unshare": (272, 97), "uselib": (134, -1), "userfaultfd": (323, 282), "ustat": (136, -1), "vhangup": (153, 58),
    "vmsplice": (278, 75),
}  # fmt: skip
"""name -> its number on x86_64 and on aarch64 (asm/unistd_64.h, asm-generic/unistd.h); -1 where there is none."""
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_IOCTL, _PRCTL = (16, 29), (157, 167)
_FCNTL, _SETSOCKOPT = (72, 25), (54, 208)
_NEWEST = 451

_EPERM, _ENOSYS, _NO_SUCH_FAMILY = 1, 38, 97
_NEW_NAMESPACES = 0x7E020080
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
_FAMILIES = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6; each of them in a network of its own."""
_NETLINK = 16
"""With the protocol 0 it tells which addresses there are; others are no business of a solution."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Typing into a terminal from below."""
_LOCKS_AND_LEASES = (5, 36, 37, 38, 1024, 1026)
"""F_GETLK, the F_OFD_ three, F_SETLEASE, F_NOTIFY. What is only read can't be locked for writing, and who may not ask
sees no lock for reading but those of open files, which /proc/locks shows to everybody."""
_BUFFER_SIZES = (7, 8, 32, 33)
"""SO_SNDBUF, SO_RCVBUF and both with FORCE, of SOL_SOCKET: what the watchdog reckons for a socket stays so."""
_SOL_SOCKET = 1
_PR_SET_DUMPABLE = 4
"""Whoever is not dumpable can't be looked at by the watchdog."""

_LOAD, _JUMP_EQUAL, _JUMP_OVER, _JUMP_SET, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND, _THIRD = 0, 4, 16, 24, 32
"""Where in `struct seccomp_data` they lie; of an argument its lower half, as little-endian machines have it."""
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

Instruction = bytes


def filter_program(machine: str | None = None) -> bytes | None:
    """The filter for that kind of processor, this one's by default; None where there is none."""
    known = _ARCHITECTURES.get(machine or platform.machine())
    if known is None:
        return None
    architecture, column = known
    refuses = _returns(_ERRNO | _EPERM)
    program = [_does(_LOAD, _ARCHITECTURE), _does(_JUMP_EQUAL, architecture, 1, 0), refuses, _does(_LOAD, _NUMBER)]
    # x32 of x86_64 has the highest numbers.
    program += [_does(_JUMP_OVER, _NEWEST, 0, 1), _returns(_ERRNO | _ENOSYS)]
    for numbers in _REFUSED.values():
        if numbers[column] >= 0:
            program += [_does(_JUMP_EQUAL, numbers[column], 0, 1), refuses]
    # glibc takes clone where clone3 does not exist; its flags lie in memory, where no filter sees them.
    program += [_does(_JUMP_EQUAL, _CLONE3[column], 0, 1), _returns(_ERRNO | _ENOSYS)]
    for number, rules in (
        (_CLONE, [_does(_LOAD, _FIRST), _does(_JUMP_SET, _NEW_NAMESPACES, 0, 1), refuses]),
        (_SOCKET, list(_of_sockets())),
        (_IOCTL, [_does(_LOAD, _SECOND), *_unless(_TIOCSTI), *_unless(_TIOCLINUX)]),
        (_PRCTL, [_does(_LOAD, _FIRST), *_unless(_PR_SET_DUMPABLE)]),
        (_FCNTL, [_does(_LOAD, _SECOND), *_unless(*_LOCKS_AND_LEASES)]),
        (_SETSOCKOPT, list(_of_buffers())),
    ):
        program += [_does(_JUMP_EQUAL, number[column], 0, len(rules) + 1), *rules, _returns(_ALLOW)]
    return b"".join([*program, _returns(_ALLOW)])


def _of_sockets() -> Iterator[Instruction]:
    yield _does(_LOAD, _FIRST)
    for family in _FAMILIES:
        yield _does(_JUMP_EQUAL, family, 0, 1)
        yield _returns(_ALLOW)
    yield _does(_JUMP_EQUAL, _NETLINK, 0, 3)
    yield _does(_LOAD, _THIRD)
    yield _does(_JUMP_EQUAL, 0, 0, 1)
    yield _returns(_ALLOW)
    yield _returns(_ERRNO | _NO_SUCH_FAMILY)


def _of_buffers() -> Iterator[Instruction]:
    rules = _unless(*_BUFFER_SIZES)
    yield from (_does(_LOAD, _SECOND), _does(_JUMP_EQUAL, _SOL_SOCKET, 0, 1 + len(rules)), _does(_LOAD, _THIRD), *rules)


def _unless(*values: int) -> list[Instruction]:
    return [each for value in values for each in (_does(_JUMP_EQUAL, value, 0, 1), _returns(_ERRNO | _EPERM))]


def _does(code: int, value: int, if_true: int = 0, if_false: int = 0) -> Instruction:
    """`struct sock_filter`: what it does, how many instructions are passed over if so and if not, with what."""
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _returns(what: int) -> Instruction:
    return _does(_RETURN, what)
