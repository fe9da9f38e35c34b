"""Libvirt's QEMU driver inside this process: no daemon, no root, nothing shared with other sessions.

`qemu:///embed?root=DIR` (libvirt >= 6.1) keeps everything below DIR. A guard process outlives ours, whatever kills
us, and then ends the guests of DIR and removes it.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

import libvirt

from fsexp import whole
from fsexp.errors import MachineError

# Why each line: stdio_handler "file": else virtlogd's socket is looked for; seccomp_sandbox 0: a filter before each of
# QEMU's system calls, against guests that are not ours; security "none": no AppArmor or SELinux labels to set;
# remember_owner, dynamic_ownership 0: no owner to change; namespaces, cgroups: those need root.
_CONF = """\
stdio_handler = "file"
seccomp_sandbox = 0
security_driver = "none"
remember_owner = 0
dynamic_ownership = 0
namespaces = []
cgroup_controllers = []
"""

_event_loop_started = threading.Lock()
_event_loop = False


def _start_event_loop() -> None:
    global _event_loop
    with _event_loop_started:
        if _event_loop:
            return
        # Libvirt prints every error to stderr itself unless told not to; ours are raised and say where the log is.
        libvirt.registerErrorHandler(lambda *_: None, None)
        libvirt.virEventRegisterDefaultImpl()

        def loop() -> None:
            while True:
                libvirt.virEventRunDefaultImpl()

        threading.Thread(target=loop, daemon=True, name="libvirt-events").start()
        _event_loop = True


class _Driver:
    """The embedded driver of this process. Libvirt opens it below one folder in a process's life, so it stays open."""

    def __init__(self, kept: Path) -> None:
        _adopt_orphans()
        # Short, since the path of a Unix socket below it may have 107 bytes at most.
        self.root = Path(tempfile.mkdtemp(prefix="fsexp-", dir="/tmp"))
        self._guard = _start_guard(self.root)
        try:
            (self.root / "etc").mkdir()
            conf = _CONF
            if os.geteuid() == 0:
                conf += 'user = "+0"\ngroup = "+0"\n'
            (self.root / "etc" / "qemu.conf").write_text(conf)
            if kept.is_dir():
                shutil.copytree(kept, self.root / "cache", dirs_exist_ok=True)
            _start_event_loop()
            with _on_one_cpu():
                self.connection = libvirt.open(f"qemu:///embed?root={self.root}")
        except BaseException:
            self._end()
            raise
        atexit.register(self.close)

    def close(self) -> None:
        try:
            self.connection.close()
        except libvirt.libvirtError:
            pass  # the guard ends what is left
        self._end()

    def _end(self) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(b"done\n")
        self._guard.stdin.close()
        self._guard.wait()
        shutil.rmtree(self.root, ignore_errors=True)


def _adopt_orphans() -> None:
    """Be the parent of the guests, which libvirt leaves to init: an init that reaps every two seconds only keeps a
    dead guest's process for so long, and libvirt waits for it to go (1.8 s of a run of 12 s)."""
    prctl_set_child_subreaper = 36  # linux/prctl.h
    ctypes.CDLL(None).prctl(prctl_set_child_subreaper, 1, 0, 0, 0)  # where it fails, init is the parent as before


@contextmanager
def _on_one_cpu() -> Iterator[None]:
    """Keep the calling thread on one CPU, always the same one.

    Libvirt reads CPUID when the driver is opened, and takes QEMU's capabilities from its cache only where the leaves
    are those that it kept. Leaf 0x1f holds the core's own number, which libvirt 9.0 does not mask as it does that of
    leaf 0xb: each run that began on another core probed QEMU anew.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextmanager
def reaping() -> Iterator[None]:
    """Reap each QEMU that ends meanwhile: the two that libvirt probes are orphans, so ours (`_adopt_orphans`), and
    libvirt waits 40 s for each that stays a zombie."""
    over = threading.Event()

    def reap() -> None:
        while not over.wait(0.02):
            for pid in _dead_guests():
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    thread = threading.Thread(target=reap, daemon=True, name="reaper")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _dead_guests() -> list[int]:
    """Our children that are zombies of QEMU."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # proc(5): pid (comm) state ppid ...; comm has 15 characters at most.
            comm, _, rest = stat.read_text(errors="replace").partition("(")[2].rpartition(") ")
            state, parent = rest.split()[:2]
            if (state, int(parent)) == ("Z", os.getpid()) and comm.startswith("qemu-system"):
                found.append(int(stat.parent.name))
    return found


_driver: _Driver | None = None


class Session:
    """This process's embedded driver, and a folder for one guest's files, which goes at the end; a context manager.

    cache: a folder that keeps QEMU's probed capabilities (3.5 s to probe, 0.35 s to read).
    """

    def __init__(self, cache: Path) -> None:
        self._kept = cache / "libvirt"

    def __enter__(self) -> Session:
        global _driver
        try:
            _driver = _driver or _Driver(self._kept)
        except libvirt.libvirtError as error:
            raise MachineError(f"libvirt's embedded QEMU driver can't be opened: {error}") from error
        self.connection = _driver.connection
        self.root = Path(tempfile.mkdtemp(prefix="guest-", dir=_driver.root))
        # QEMU's own log goes on where the one of the guest before ended.
        self.logs = _driver.root / "log" / "qemu"
        for log in self.logs.glob("*.log"):
            log.unlink()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._keep_capabilities()
        shutil.rmtree(self.root, ignore_errors=True)

    def on_lifecycle(self, domain: libvirt.virDomain, call: Callable[[int, int], None]) -> int:
        """Call `call(event, detail)` on each change of the domain's life; returns a handle for `forget`."""
        return self.connection.domainEventRegisterAny(
            domain,
            libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE,
            lambda _conn, _dom, event, detail, _opaque: call(event, detail),
            None,
        )

    def pid(self, name: str) -> int:
        """The process of the guest `name`. Raises OSError or ValueError where there is none."""
        return int((self.root.parent / "run" / "qemu" / f"{name}.pid").read_text())

    def forget(self, handle: int) -> None:
        """End what `on_lifecycle` began."""
        self.connection.domainEventDeregisterAny(handle)

    def _keep_capabilities(self) -> None:
        # Probed when the first domain is defined, so kept at the end; and probed anew when QEMU or libvirt changed, so
        # kept again. Several runs end at once.
        found = Path("qemu", "capabilities")
        for probed in (self.root.parent / "cache" / found).glob("*.xml"):
            kept = self._kept / found / probed.name
            if kept.exists() and kept.read_bytes() == probed.read_bytes():
                continue
            whole.write(kept, probed.read_bytes())


# Waits for our word or for end of file on its standard input, which comes when we die; then ends every process whose
# command line names the session's folder, and removes the folder. Where we died, QEMU may be about to start and not yet
# bear its name: it looks again until a second has passed without one. /bin/sh, since it is started for every run.
_GUARD = r"""
trap '' INT TERM HUP
sweep() {
  found=1
  for p in /proc/[0-9]*; do
    [ "${p#/proc/}" != "$$" ] && tr '\0' '\n' 2>/dev/null <"$p/cmdline" | grep -qF "$1/" &&
      kill -KILL "${p#/proc/}" && found=0
  done
  return $found
}
if read -r _; then
  sweep "$1"
else
  quiet=0
  while [ $quiet -lt 10 ]; do
    if sweep "$1"; then quiet=0; else quiet=$((quiet + 1)); fi
    sleep 0.1
  done
fi
rm -rf -- "$1"
"""


def _start_guard(root: Path) -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C goes to the whole foreground process group, and the guard must outlive us.
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "fsexp-guard", str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        close_fds=True,
        cwd="/",
    )
