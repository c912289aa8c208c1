"""Attacks from the cell of an exercise, while the judge asks it: name -> text of the cell.

A cell tries things; what has worked is in FOUND, which it gives as its answer, so that the report tells. `$VICTIM` and
other words with a dollar stand for places of this machine (`tests.attacks.machine`).
"""

from __future__ import annotations

from tests.attacks.machine import CONFINED_TRIES

TRIES = CONFINED_TRIES + "def same_message(*a): return FOUND\n"

REACHES: dict[str, str] = {
    "unix socket": """
import socket
def connect(name):
    with socket.socket(socket.AF_UNIX) as mine: mine.connect(name)
for name in ("$SOCKET", "/run/docker.sock", "/run/dbus/system_bus_socket", "\\0attack"):
    tried(name, lambda: connect(name))
""",
    "chmod, utime, chown, xattr, link of an outside file": """
for path in ("$MQLAB/__init__.py", "/usr/bin/env", "/etc/passwd", "/usr", "/"):
    # These are the machine's own: it is asked for what they have already.
    now = os.stat(path)
    tried("chmod " + path, lambda: os.chmod(path, now.st_mode & 0o7777))
    tried("utime " + path, lambda: os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns)))
    tried("chown " + path, lambda: os.chown(path, now.st_uid, now.st_gid))
    tried("link " + path, lambda: os.link(path, "$TMP/linked"))
    tried("open " + path, lambda: os.close(os.open(path, os.O_RDWR)))
for path in ("$VICTIM/file", "$VICTIM", "$NOTEBOOK", "$KEY"):
    tried("chmod " + path, lambda: os.chmod(path, 0))
    tried("utime " + path, lambda: os.utime(path, (1, 1)))
    tried("chown " + path, lambda: os.chown(path, 1, 1))
    tried("setxattr " + path, lambda: os.setxattr(path, "user.x", b"x"))
    tried("rename " + path, lambda: os.rename(path, path + "2"))
    tried("link " + path, lambda: os.link(path, "$TMP/linked"))
    tried("truncate " + path, lambda: os.truncate(path, 0))
    tried("unlink " + path, lambda: os.unlink(path))
""",
    "chmod through /proc": """
for link in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd/..", "/proc/1/cwd", "/proc/thread-self/root"):
    tried(link, lambda: os.chmod(link + "$VICTIM/file", 0))
    tried(link + " key", lambda: open(link + "$KEY").read())
""",
    "own lateness": """
import glob
for line in glob.glob("/proc/[0-9]*/cmdline"):
    words = open(line, "rb").read().split(b"\\0")
    for word in words:
        if b".ipynb" in word: tried("utime", lambda: os.utime(word, (1, 1)))
""",
    "command lines of others": """
import glob
for line in glob.glob("/proc/[0-9]*/cmdline"):
    said = open(line, "rb").read()
    if b"mqlab.grading.marking" in said or b"pytest" in said or b"handed" in said: FOUND.append(said[:80])
""",
    "reads what is not its own": """
import glob
for path in ("$KEY", "$NOTEBOOK", "$VICTIM/file", "$CLONE/labs/sources/00_tour.py", "$CLONE/tests/labs/wrong/00_tour.py",
             "$CLONE/.git/HEAD", "$CLONE/.git", "/etc/shadow", "/var/lib/dpkg/status", "/etc/hostname"):
    tried(path, lambda: open(path).read())
tried("names", lambda: {}[not [n for n in ("$CLONE/labs", "$CLONE/tests", "$VICTIM", "/home", "/var", "/run", "/sys") if os.path.exists(n)]])
""",
    "imports the judge's oracle": """
import importlib, sys, glob
for name in ("mqlab.labs.checks.02_store", "mqlab.labs.checks", "mqlab.labs.reference", "mqlab.labs.build"):
    tried(name, lambda: importlib.import_module(name) and None)
for place in sys.path: FOUND.extend(glob.glob(place + "/mqlab/**/0*", recursive=True))
""",
    "changes its packages": """
import mqlab, json, site, sys
for path in (mqlab.__file__, json.__file__, sys.prefix + "/lib/evil.pth", sys.prefix + "/pyvenv.cfg", sys.executable):
    tried(path, lambda: open(path, "a").close())
for folder in (os.path.dirname(mqlab.__file__), os.path.dirname(json.__file__), sys.prefix, "/usr/lib", "/etc", "/"):
    tried(folder, lambda: os.mkdir(folder + "/owned"))
""",
    "network": """
import socket
for place in (("192.0.2.1", 80), ("169.254.169.254", 80), ("8.8.8.8", 53)):
    tried(place, lambda: socket.create_connection(place, 1) and None)
for kind in (40, 17, 38, 29, 21):
    tried(f"family {kind}", lambda: socket.socket(kind, socket.SOCK_STREAM) and None)
tried("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1) and None)
tried("netfilter", lambda: socket.socket(16, socket.SOCK_RAW, 12) and None)
""",
    "system calls": """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, call in dict(
    unshare_user=lambda: libc.unshare(0x10000000), unshare_mount=lambda: libc.unshare(0x20000),
    mount=lambda: libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), umount=lambda: libc.umount2(b"/tmp", 2),
    chroot=lambda: libc.chroot(b"/"), ptrace=lambda: libc.ptrace(0, 0, 0, 0), bpf=lambda: libc.syscall(321, 0, 0, 0),
    keyctl=lambda: libc.syscall(250, 0, -3, 1), add_key=lambda: libc.syscall(248, b"user", b"k", b"v", 1, -3),
    memfd=lambda: libc.memfd_create(b"m", 0), shm=lambda: libc.shmget(0, 4096, 0o1600), msg=lambda: libc.msgget(0, 0o1600),
    sem=lambda: libc.semget(0, 9, 0o1600), personality=lambda: libc.personality(0x0008), uring=lambda: libc.syscall(425, 1, 0),
    userfaultfd=lambda: libc.syscall(323, 0), perf=lambda: libc.syscall(298, 0, 0, -1, -1, 0), dumpable=lambda: libc.prctl(4, 0),
    sethostname=lambda: libc.sethostname(b"x", 1), settime=lambda: libc.syscall(227, 0, 0), setns=lambda: libc.setns(0, 0),
    pivot=lambda: libc.syscall(155, b"/", b"/"), open_tree=lambda: libc.syscall(428, -100, b"/", 1), mknod=lambda: libc.mknod(b"$TMP/d", 0o60666, 1),
    x32=lambda: libc.syscall(0x40000000 + 39), newest=lambda: libc.syscall(462), process_vm=lambda: libc.syscall(310, 1, 0, 0, 0, 0, 0),
    clone_user=lambda: libc.syscall(56, 0x10000011, 0, 0, 0, 0), clone3=lambda: libc.syscall(435, 0, 0),
).items():
    if call() >= 0: FOUND.append(name)
""",
    "becomes somebody else": """
for name, call in dict(root=lambda: os.setuid(0), group=lambda: os.setgid(0), groups=lambda: os.setgroups([0]),
    nice=lambda: os.nice(-5), kill=lambda: os.kill(-1, 0) or {}[0], host=lambda: os.kill($MARKER, 0)).items():
    tried(name, call)
""",
    "devices and the kernel's files": """
for name in ("/dev/vda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm", "/proc/kcore", "/proc/kmsg", "/proc/sysrq-trigger"):
    tried(name, lambda: open(name, "rb").read(1))
for name in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches", "/proc/sys/kernel/hostname",
             "/proc/sys/kernel/modprobe", "/sys/power/state", "/proc/1/oom_score_adj"):
    tried("write " + name, lambda: os.close(os.open(name, os.O_WRONLY)))
""",
    "descriptors and environment": """
for name in os.listdir("/proc/self/fd"):
    try: link = os.readlink("/proc/self/fd/" + name)
    except OSError: continue
    if not link.startswith(("pipe:", "/dev/null", "/proc/")): FOUND.append(link)
FOUND.extend(name for name in os.environ if "KEY" in name or "TOKEN" in name or "SSH" in name)
""",
    "leaves something in shared memory": """
for name in ("/dev/shm/mqlab-attack", "$TMP/mqlab-attack", "/var$TMP/mqlab-attack", "/dev/mqueue/mqlab-attack"):
    try: open(name, "w").write("left by one student")
    except OSError: pass
from multiprocessing import shared_memory
tried("none", lambda: shared_memory.SharedMemory("mqlab-attack-2", create=True, size=10) and {}[0])
""",
    "finds what another one has left": """
for name in ("/dev/shm/mqlab-attack", "$TMP/mqlab-attack", "/var$TMP/mqlab-attack", "/dev/shm/mqlab-attack-2"):
    tried(name, lambda: open(name).read())
FOUND.extend(os.listdir("/dev/shm") + os.listdir("/tmp"))
""",
    "poisons the next start": """
import sys
for name in ("~/.ipython", "~/.jupyter", "~/.local/lib", "~/.config", "~/.bashrc"):
    try: os.makedirs(os.path.expanduser(name))
    except OSError: pass
for name in (sys.prefix + "/share/jupyter", sys.prefix + "/etc", "$CLONE/mqlab/__pycache__", "$CLONE/.venv"):
    tried(name, lambda: open(name + "/evil.py", "w"))
""",
    "handles and magic links": """
import ctypes
libc = ctypes.CDLL(None)
for number in range(64):
    for other in (f"/proc/1/fd/{number}", f"/proc/self/fd/{number}"):
        try: real = os.readlink(other)
        except OSError: continue
        if real.startswith("/") and not real.startswith(("/dev", "/proc", "/tmp", "/usr")): FOUND.append(real)
tried("by handle", lambda: {}[libc.open_by_handle_at(-100, None, 0) < 0])
""",
    "moves what is mounted": """
import sys, mqlab
for name in ("/tmp", "/usr", "/proc", sys.prefix, os.path.dirname(mqlab.__file__)):
    tried(name, lambda: os.rename(name, name + "-moved"))
    tried("rmdir " + name, lambda: os.rmdir(name))
    tried("symlink " + name, lambda: os.symlink("/", name + "/../lnk") if name != "/tmp" else {}[0])
""",
    "setuid programs": """
import subprocess
for words in (["sudo", "-n", "id"], ["su", "-c", "id"], ["mount", "-t", "tmpfs", "x", "/tmp"], ["passwd", "-S"], ["ping", "-c1", "127.0.0.1"]):
    tried(words[0], lambda: {}[subprocess.run(words, capture_output=True, stdin=-3, timeout=5).returncode != 0])
tried("nested", lambda: {}[subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], capture_output=True).returncode != 0])
""",
    "types into a terminal": """
import fcntl, pty
def type_in():
    other, mine = pty.openpty()
    for each in b"id\\n": fcntl.ioctl(mine, 0x5412, bytes([each]))
tried("TIOCSTI", type_in)
tried("tty", lambda: open("/dev/tty", "w").write("x"))
""",
    "members talk over sockets of the loopback": """
import socket, glob
tried("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0mqlab-attack"))
server = socket.socket(socket.AF_UNIX); server.bind("\\0mqlab-attack"); server.listen()
for port in (22, 80, 631, 8888): tried(port, lambda: socket.create_connection(("127.0.0.1", port), 1) and None)
""",
    "locks, leases and watches of what all can read": """
import ctypes, fcntl, struct
libc = ctypes.CDLL(None)
shared = os.open("/usr/bin/env", os.O_RDONLY)
asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
tried("flock", lambda: fcntl.flock(shared, fcntl.LOCK_SH | fcntl.LOCK_NB))
tried("lease", lambda: fcntl.fcntl(shared, fcntl.F_SETLEASE, fcntl.F_RDLCK) and None)
tried("notes of a directory", lambda: fcntl.fcntl(os.open("/usr/bin", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS) and None)
tried("who has a lock", lambda: fcntl.fcntl(shared, fcntl.F_GETLK, asked) and None)
tried("who has an open file's lock", lambda: fcntl.fcntl(shared, 36, asked) and None)
tried("an open file's lock", lambda: fcntl.fcntl(shared, 37, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0)) and None)
FOUND.extend(line for line in open("/proc/locks") if "OFDLCK" in line)
tried("inotify", lambda: {}[libc.inotify_init() < 0])
tried("inotify1", lambda: {}[libc.inotify_init1(0) < 0])
""",
    "larger buffers of sockets": """
import socket
for kind in (socket.AF_UNIX, socket.AF_INET):
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
        tried(option, lambda: socket.socket(kind).setsockopt(socket.SOL_SOCKET, option, 1 << 24))
socket.socket().setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
""",
    "the same calls by other doors": """
import ctypes, mmap, struct
def machine_code(number, first):
    room = mmap.mmap(-1, 4096, prot=7)
    room.write(b"\\x53\\xb8" + struct.pack("<I", number) + b"\\xbb" + struct.pack("<I", first) + b"\\xcd\\x80\\x5b\\xc3")
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(room)))()
if os.uname().machine == "x86_64":
    for name, number, first in (("getpid", 20, 0), ("unshare", 310, 0x10000000), ("memfd_create", 356, 0)):
        if machine_code(number, first) >= 0: FOUND.append("i386 " + name)
    call = ctypes.CDLL(None).syscall
    if call(ctypes.c_long((1 << 32) | 272), 0x10000000) >= 0: FOUND.append("upper half")
""",
    "judge's frames": """
import sys, gc
seen, frame = [], sys._getframe()
while frame:
    seen.append(str(frame.f_globals.get("__name__"))); frame = frame.f_back
FOUND.extend(name for name in seen if "judging" in name or "marking" in name)
FOUND.extend(name for name in sys.modules if name.startswith(("mqlab.grading.judging", "mqlab.labs.checks")))
FOUND.extend(str(type(each)) for each in gc.get_objects() if type(each).__name__ in ("Judge", "LabCheck", "Job"))
""",
}
"""What it reaches for lies outside; each gives what it has reached, which must be nothing."""

EARNS: dict[str, tuple[str, str]] = {
    "surrogate in an exception": ('def same_message(*a): raise ValueError("\\udcff")', "\\udcff"),
    "surrogate in an answer": ('def same_message(*a): return "\\ud800"', "\\ud800"),
    "surrogate in a key": ('def same_message(*a): return {"\\ud800": {"\\udfff"}}', "\\ud800"),
    "surrogate in a class's name": ('def same_message(*a): return type("\\ud800", (), {})()', ""),
    "surrogate in the cell": ('# \ud800\ndef same_message(*a): return 7', "7"),
    "surrogate from a decoded file": ('def same_message(*a): return b"\\xff".decode(errors="surrogateescape")', "udcff"),
    "escape codes": ('def same_message(*a): return "\\x1b[2J\\x1b]0;owned\\x07\\u202egnp"', "\\x1b[2J"),
    "error with surrogate and null": ('class E(Exception): pass\ndef same_message(*a): raise E("\\0\\ud800" * 9000)', "E:"),
    "error without a text": ("class E(Exception):\n    def __str__(self): 1 / 0\ndef same_message(*a): raise E", ""),
    "error of mqlab, half made": (
        "from mqlab.errors import LearnerError\ndef same_message(*a):\n    e = LearnerError.__new__(LearnerError)\n"
        "    e.args = (1, 2, 3, 4, 5)\n    raise e", ""),
    "recursion": ("def same_message(*a): return same_message(*a)", "RecursionError"),
    "memory error": ("def same_message(*a): raise MemoryError('x' * 10**6)", ""),
    "keyboard interrupt": ("def same_message(*a): raise KeyboardInterrupt", ""),
    "system exit": ("def same_message(*a): raise SystemExit(0)", ""),
    "stop iteration": ("def same_message(*a): raise StopIteration(True)", "StopIteration"),
    "group of errors": ("def same_message(*a): raise ExceptionGroup('x', [ValueError('\\ud800')] * 1000)", ""),
    "huge hex int": ("def same_message(*a): return 16 ** 1_000_000", ""),
    "a generator": ("def same_message(*a):\n    while True: yield True", ""),
    "a coroutine": ("async def same_message(*a): return True", "begins with `async def`"),
    "an object that is asked": ("class A:\n    def __bool__(self): return True\n    def __eq__(self, o): return True\n"
        "def same_message(*a): return A()", "True or False is wanted"),
    "a bool of its own": ("class B(int):\n    def __eq__(self, o): return True\n    __hash__ = None\n"
        "def same_message(*a): return B(1)", "True or False is wanted"),
    "many empty lists": ("def same_message(*a): return [[]] * 2_000_000", ""),
    "many empty lists, on the wire": ("import os\ndef same_message(*a):\n    for fd in range(3, 20):\n"
        "        try: os.write(fd, b'[\"value\",[' + b'[],' * 9_000_000 + b'[]]]\\n')\n        except OSError: pass", ""),
    "many objects": ("class A: pass\ndef same_message(*a): return [A() for _ in range(100_000)]", "objects"),
    "many references, on the wire": (
        "import os, json\ndef same_message(*a):\n"
        "    line = json.dumps(['value', ['list', [['mine', n, 'x', '', []] for n in range(10, 150_000)]]]).encode() + b'\\n'\n"
        "    for fd in range(3, 20):\n        try: os.write(fd, line)\n        except OSError: pass", ""),
    "deep on the wire": ("import os\ndef same_message(*a):\n    for fd in range(3, 20):\n"
        "        try: os.write(fd, b'[' * 1_000_000 + b'\\n')\n        except OSError: pass", ""),
    "a line without an end": ("import os\ndef same_message(*a):\n    while True:\n        for fd in range(3, 20):\n"
        "            try: os.write(fd, b'x' * 65536)\n            except OSError: pass", ""),
    "questions without an end": ("import os\ndef same_message(*a):\n    while True:\n        for fd in range(3, 20):\n"
        "            try: os.write(fd, b'[\"ask\",\"text\",0]\\n' * 1000)\n            except OSError: pass", ""),
    "a wide string": ("def same_message(*a): return 'x' * 7_000_000 + '\\U0001f600'", "True or False is wanted"),
    "long explanation": ("def same_message(*a): return ['y' * 100] * 100_000", "yy"),
    "colliding numbers": ("def same_message(*a): return {(2**61 - 1) * n for n in range(1, 30_000)}", ""),
    "sleeps in each call": ("import time\ndef same_message(*a):\n    time.sleep(3)\n    return a[0][1:] == a[1][1:]", "time"),
    "sleeps for ever": ("import time\ndef same_message(*a): time.sleep(10_000)", "come to an end"),
    "sleeps while it is defined": ("import time\ntime.sleep(10_000)\ndef same_message(*a): pass", ""),
    "computes for ever": ("def same_message(*a):\n    while True: pass", "come to an end"),
    "stops itself": ("import os, signal\ndef same_message(*a): os.kill(os.getpid(), signal.SIGSTOP)", "come to an end"),
    "kills all it can": ("import os\nassert os.getpid() < 50\ndef same_message(*a):\n    try: os.kill(-1, 9)\n"
        "    except ProcessLookupError: pass", "yours gives None"),
    "kills its namespace": ("import os\ndef same_message(*a):\n    os.kill(1, 9)\n    os.kill(os.getppid(), 9)\n    return 0", ""),
    "hangs up": ("import os\ndef same_message(*a):\n    for fd in range(3, 20):\n        try: os.close(fd)\n"
        "        except OSError: pass\n    import time; time.sleep(100)", ""),
    "deep directories": ("import os\ndef same_message(*a): return 0\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')", "0"),
    "many files": ("import os\ndef same_message(*a): return 0\nfor n in range(60_000): open(f'$TMP/{n}', 'w').close()\n"
        "import time; time.sleep(3)", ""),
    "fills its disk": ("def same_message(*a): return written\nwritten = 0\ntry:\n    for n in range(20):\n"
        "        with open(f'$TMP/{n}', 'wb') as f: written += f.write(bytes(90_000_000))\nexcept OSError as e: written = e.errno",
        "28"),
    "fills shared memory": ("def same_message(*a): return written\nwritten = 0\ntry:\n    for n in range(20):\n"
        "        with open(f'/dev/shm/{n}', 'wb') as f: written += f.write(bytes(90_000_000))\nexcept OSError as e: written = e.errno",
        "28"),
    "memory balloon": ("def same_message(*a):\n    kept = []\n    while True: kept.append(bytearray(10**7))", ""),
    "memory in shared mappings": ("import mmap\ndef same_message(*a):\n    kept = []\n    while True:\n"
        "        m = mmap.mmap(-1, 10**8); m.write(bytes(10**8)); kept.append(m)", ""),
    "memory in Unix sockets": ("import socket, time\nkept = []\ndef same_message(*a):\n    while len(kept) < 500:\n"
        "        kept.append(socket.socketpair(type=socket.SOCK_DGRAM))\n        for each in kept[-1]:\n            each.setblocking(False)\n"
        "            try:\n                while True: each.send(bytes(60_000))\n            except OSError: pass\n"
        "    import os\n    while True:\n        if not os.fork():\n"
        "            for pair in kept:\n                for each in pair: each.close()\n            kept.clear()\n            same_message()\n"
        "        time.sleep(0.2)",
        "more than the 0.5 GiB of memory"),
    "memory in TCP's sockets": ("import os, socket, time\ndef same_message(*a):\n    while True:\n        if not os.fork(): fill()\n"
        "        time.sleep(0.2)\ndef fill():\n    kept = []\n    server = socket.create_server(('127.0.0.1', 0), backlog=500)\n"
        "    for _ in range(300):\n        kept += [socket.create_connection(server.getsockname()), server.accept()[0]]\n"
        "        for each in kept[-2:]:\n            each.setblocking(False)\n            try:\n"
        "                while True: each.send(bytes(60_000))\n            except OSError: pass\n    time.sleep(1000)",
        "more than the 0.5 GiB of memory"),
    "a patch of all classes it sees": ("import sys\ndef same_message(*a):\n    for m in list(sys.modules.values()):\n"
        "        if getattr(m, '__name__', '').startswith('mqlab'):\n            for c in list(vars(m).values()):\n"
        "                if isinstance(c, type):\n                    try: c.__eq__ = lambda *x: True\n"
        "                    except Exception: pass\n    return 7", ""),
    "memory in page tables": ("import ctypes, mmap, time\ndef same_message(*a):\n    libc = ctypes.CDLL(None)\n"
        "    libc.mmap.restype = ctypes.c_void_p\n    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
        "    size = 1 << 40\n    at = libc.mmap(None, size, 1, 0x4022, -1, 0)\n    libc.madvise(ctypes.c_void_p(at), ctypes.c_size_t(size), 15)\n"
        "    for place in range(at, at + size, 1 << 21): ctypes.c_char.from_address(place).value\n    time.sleep(2)\n    return 0",
        "more than the 0.5 GiB of memory"),
    "fork bomb": ("import os\ndef same_message(*a):\n    while True: os.fork()", ""),
    "thread bomb": ("import threading, time\ndef same_message(*a):\n"
        "    while True: threading.Thread(target=time.sleep, args=(1000,)).start()", ""),
    "detached child": ("import subprocess\nsubprocess.Popen(['sleep', '31415'], start_new_session=True)\n"
        "def same_message(*a): return 0", "0"),
    "twice detached child": ("import os\nif not os.fork():\n    os.setsid()\n    if not os.fork(): os.execvp('sleep', ['sleep', '31415'])\n"
        "    os._exit(0)\ndef same_message(*a): return 0", "0"),
    "patched far side": ("import json, mqlab.grading.peer as peer, mqlab.grading.values as values\n"
        "values.Values.encode = lambda self, value, depth=0: ['named', 'mqlab.check.registry:Right', ['figures'], [{}]]\n"
        "def same_message(*a): return True", ""),
    "forged verdict class": ("from mqlab.check.verdict import Verdict\ndef same_message(*a): return Verdict", "there is no class"),
    "lying enumeration": ("import enum, sys\nclass E(enum.Enum):\n    A = True\nE.__module__ = 'mqlab.client'\n"
        "def same_message(*a): return E.A", ""),
    "changes what it was given": ("def same_message(a, b):\n    try: a.__class__.__eq__ = lambda *x: True\n"
        "    except Exception: pass\n    return a is b", "" ),
    "imports over the pipe": ("import os\ndef same_message(*a):\n    for fd in range(3, 20):\n"
        "        try: os.write(fd, b'[\"value\",[\"class\",\"mqlab.labs.checks.00_tour:Place\"]]\\n')\n"
        "        except OSError: pass\n    return 0", ""),
    "stub": ("def same_message(*a): raise NotSolvedYet", "stub"),
    "null byte": ("def same_message(*a): return 1\n\0", ""),
    "bomb for the parser": ("(" * 50_000 + ")" * 50_000, ""),
    "long chain": ("x = " + "1 + " * 20_000 + "1\ndef same_message(*a): return 0", ""),
    "huge literal": ("size = 0x" + "f" * 50_000 + "\ndef same_message(*a): return size", ""),
}  # fmt: skip
"""It looks for points without the right answer, or for what ends the judge: the cell, and a part of the reason."""
