"""A guest's life: start it, watch its two ports, end it within its limits."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import libvirt

from fsexp.errors import KernelRefused, MachineError
from fsexp.vm.outcome import Ended
from fsexp.vm.session import Session, reaping

# How often the ports are looked at. Host time decides only whether a guest is given up, never a digit of it.
_LOOK_S = 0.05

# How long libvirt may take to tell of the end of a QEMU that is gone: it tells after it has asked the process to end
# and has seen it go.
_TOLD_S = 10


# What QEMU says before it ends, seen with 7.2: hw/i386/x86.c and hw/core/loader.c.
_KERNEL_REFUSED = re.compile(
    r"could not load kernel|invalid kernel header|linux kernel too old[^\n]*|Error while loading elf kernel"
    r"|Error loading uncompressed kernel[^\n]*"
)


@dataclass(frozen=True)
class Boot:
    """What became of a guest.

    wall_s: from the start of QEMU to its end. boot_wall_s: from its start to the core's first record, or None.
    """

    ended: Ended
    wall_s: float
    boot_wall_s: float | None
    argv: list[str]


def boot(session: Session, xml: str, console: Path, records: Path, hang_s: float, timeout_s: float) -> Boot:
    """Start the domain that `xml` describes and wait for its end; it is gone when this returns or raises.

    console, records: the files its serial ports write, watched for signs of life.
    Raises KernelRefused when QEMU does not take the kernel's file, MachineError when it can't be started otherwise.
    """
    for port in (console, records):
        port.touch()
    ended = threading.Event()
    events: list[int] = []

    def on_event(event: int, _detail: int) -> None:
        # The guest's own word comes as a shutdown, before QEMU is gone; QEMU's death only as a stop.
        if event in (libvirt.VIR_DOMAIN_EVENT_SHUTDOWN, libvirt.VIR_DOMAIN_EVENT_STOPPED):
            events.append(event)
            ended.set()

    try:
        # Defined first, so that the end's event has a domain to belong to when the guest is very quick.
        with reaping():
            domain = session.connection.defineXML(xml)
    except libvirt.libvirtError as error:
        raise MachineError(f"libvirt does not take the guest's description: {error}") from error
    handle = session.on_lifecycle(domain, on_event)
    try:
        started = time.monotonic()
        try:
            domain.create()
        except libvirt.libvirtError as error:
            if refused := _KERNEL_REFUSED.search(str(error)):
                raise KernelRefused(f"QEMU does not take the kernel: {refused[0]}") from error
            raise MachineError(f"libvirt could not start the guest: {error}{_log_tail(session)}") from error
        gone = _death(session, domain.name())
        how, first_record_s = _watch(ended, events, gone, console, records, started, hang_s, timeout_s)
        wall_s = time.monotonic() - started
    finally:
        # An interrupt that came while libvirt was starting QEMU is raised when it has: that guest is ended too.
        _destroy(session, domain)
        session.forget(handle)
        domain.undefine()
    if how.how == "died":
        how = Ended("died", how.detail + _log_tail(session))
    return Boot(how, wall_s, first_record_s, _argv(session))


def _watch(
    ended: threading.Event,
    events: list[int],
    gone: Callable[[], bool],
    console: Path,
    records: Path,
    started: float,
    hang_s: float,
    timeout_s: float,
) -> tuple[Ended, float | None]:
    sizes, changed, first_record_s = (0, 0), started, None
    while not ended.wait(_LOOK_S):
        if gone():
            ended.wait(_TOLD_S)
            break
        now = time.monotonic()
        current = (console.stat().st_size, records.stat().st_size)
        if current != sizes:
            sizes, changed = current, now
        if first_record_s is None and current[1]:
            first_record_s = now - started
        if now - started > timeout_s:
            return Ended("timeout", f"it ran for more than {timeout_s:g} s"), first_record_s
        if now - changed > hang_s:
            return Ended("hang", f"no record and no console byte for {hang_s:g} s"), first_record_s
    if libvirt.VIR_DOMAIN_EVENT_SHUTDOWN in events:
        return Ended("power-off"), first_record_s
    return Ended("died", "QEMU ended without the guest's word"), first_record_s


def _death(session: Session, name: str) -> Callable[[], bool]:
    """A question: has the guest's process ended? It is our child (session._adopt_orphans), so nobody else reaps it.

    A dead child that nobody reaps still counts as alive for libvirt, which then waits for it and never says that it
    stopped: QEMU killed from outside would not be noticed before the run's limit.
    """
    try:
        pid = session.pid(name)
    except (OSError, ValueError):
        return lambda: False  # it has ended already, and libvirt has told or will
    reaped = False

    def gone() -> bool:
        nonlocal reaped
        try:
            reaped = reaped or os.waitpid(pid, os.WNOHANG)[0] == pid
        except ChildProcessError:
            return False  # not our child: init's, or reaped at libvirt's word
        return reaped

    return gone


def _destroy(session: Session, domain: libvirt.virDomain) -> None:
    """End QEMU at once, without asking: it has nothing left to save."""
    try:
        pid = session.pid(domain.name())
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (OSError, ValueError):
        pass  # no pid file, or no such process: it is gone already; or init is its parent, and reaps it
    try:
        if domain.isActive():
            domain.destroy()
    except libvirt.libvirtError:
        pass  # it ended between the question and the call


def _logs(session: Session) -> list[Path]:
    return sorted(session.logs.glob("*.log"))


def _log_tail(session: Session) -> str:
    """The last line that QEMU itself wrote, which says why it ended."""
    for log in _logs(session):
        lines = log.read_text(errors="replace").splitlines()
        own = [line for line in lines if "qemu-system" in line and not line.startswith("/")]
        if own:
            return f"; QEMU says: {own[-1].strip()}"
    return ""


def _argv(session: Session) -> list[str]:
    """QEMU's command line as libvirt wrote it in its log: environment, program, one argument a line."""
    for log in _logs(session):
        argv: list[str] = []
        for line in log.read_text(errors="replace").splitlines():
            text = line.strip().removesuffix(" \\")
            if text.startswith("/") and not argv:
                argv = [text]
            elif argv:
                argv.append(text)
                if not line.rstrip().endswith("\\"):
                    return argv
    return []
