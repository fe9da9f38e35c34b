"""How a run ended, told from its console, its records and what became of QEMU.

One table decides, most specific row first: a crashed kernel also cuts its records and often hangs, so the crash
must be looked for before those.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fsexp.vm.record import Stream

# outcome -> what it means. The first is the only one that figures are taken from.
OUTCOMES = {
    "ok": "the workload ended and every record arrived",
    "no-kernel": "the kernel could not be had",
    "build-failed": "the kernel could not be built",
    "no-boot": "the kernel did not reach the core",
    "panic": "the kernel panicked",
    "oops": "the kernel reported a fault of its own (BUG, Oops, KASAN, soft lockup) and went on",
    "hang": "neither a record nor a console byte came for the time allowed",
    "timeout": "the run took longer than the time allowed",
    "mount-failed": "the filesystem under test was not mounted",
    "workload-failed": "an operation of the workload failed",
    "corrupt": "the filesystem lost or changed data",
    "unsupported": "the kernel, or mkfs, lacks what the run needs",
    "no-result": "the guest's records are not all there",
    "infrastructure": "the machine failed, not the experiment",
    "missing": "the run was not made yet",
}
# The outcomes that a run which was made can have.
MADE = frozenset(OUTCOMES) - {"missing"}


@dataclass(frozen=True)
class Ended:
    """What the host saw of a guest's end.

    how: "power-off", "hang", "timeout" or "died" (QEMU ended without the guest's word).
    detail: the host's reason, a clause.
    """

    how: str
    detail: str = ""


@dataclass(frozen=True)
class _Case:
    console: str
    stream: Stream
    ended: Ended


_Answer = str | None
# How a line begins: with the time, where the kernel was configured to print it. The core's own lines are left out,
# since they quote names that a workload chose; (?> so that they are not found by beginning after fewer characters.
_START = r"^(?>(?:<\d+>)?(?:\[ *\d+\.\d+\](?:\[[^\]\n]*\])?)? *)(?!fsexp: )"


def _line(*phrases: str) -> re.Pattern[str]:
    return re.compile(rf"{_START}(.*(?:{'|'.join(phrases)}).*)$", re.MULTILINE)


# The first line of trouble; each was taken from a console of the kernels named.
_NO_INIT = _line(
    "No working init found", "No init found", "Unable to mount root fs", "VFS: Cannot open root device",
    r"Requested init \S+ failed",
)  # fmt: skip
_PANIC = _line("Kernel panic - not syncing")
# "BUG: " begins what the kernel's own checks find: bad accesses (also by KASAN, KMSAN, KCSAN and KFENCE), soft lockups,
# sleeping in atomic context. The number in brackets counts the faults since the boot: "invalid opcode: 0000 [#1] SMP".
_OOPS = _line(
    "BUG: ", "kernel BUG at ", "Oops: ", r": [0-9a-f]{4} \[#\d+\]", "general protection fault, ",
)  # fmt: skip
# What the kernel complains of without a fault that is certain: its state may be good, so the outcome stays. UBSAN is
# here since what it finds is defined by the kernel's own compiler flags, and much of it is harmless.
_WARNING = re.compile(
    rf"{_START}((?:WARNING: |UBSAN: |Out of memory: Kill|INFO: task \S+ blocked for more than \d+ seconds"
    r"|(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stall).*)$",
    re.MULTILINE,
)
# How filesystems begin their lines, since not every line names the device: "BTRFS: open_ctree failed".
_FILESYSTEMS = r"(?:EXT[234]-fs|BTRFS|btrfs|XFS|F2FS-fs|JFS|JBD2?|REISERFS|NILFS|bcachefs)\b"


def _no_boot(case: _Case) -> _Answer:
    if case.stream.records:
        return None
    match = _NO_INIT.search(case.console)
    if match:
        return match.group(1)
    if case.ended.how in ("hang", "timeout"):
        what = "its last line was: " + _last_line(case.console) if case.console.strip() else "it printed nothing"
        return f"{case.ended.detail}; the kernel did not reach the core; {what}"
    return None


def _panic(case: _Case) -> _Answer:
    match = _PANIC.search(case.console)
    if match is None:
        return None
    first = _OOPS.search(case.console)
    return f"{first.group(1)}; {match.group(1)}" if first and first.start() < match.start() else match.group(1)


def _oops(case: _Case) -> _Answer:
    match = _OOPS.search(case.console)
    return match.group(1) if match else None


def _fault(case: _Case) -> _Answer:
    if case.stream.fault is None:
        return None
    # A guest that was cut off in the middle of a line was not garbled by the port: its own end says more.
    return None if case.ended.how in ("hang", "timeout", "died") else case.stream.fault


def _died(case: _Case) -> _Answer:
    return case.ended.detail or "QEMU ended by itself" if case.ended.how == "died" else None


def _hang(case: _Case) -> _Answer:
    return f"{case.ended.detail}; {_where(case)}" if case.ended.how == "hang" else None


def _timeout(case: _Case) -> _Answer:
    return f"{case.ended.detail}; {_where(case)}" if case.ended.how == "timeout" else None


def _never_started(case: _Case) -> _Answer:
    if case.stream.records:
        return None
    return "the guest ended before the core's first record; its last line was: " + _last_line(case.console)


def _failed(steps: tuple[str, ...], *errors: str) -> Callable[[_Case], _Answer]:
    def test(case: _Case) -> _Answer:
        for record in case.stream.of("fail"):
            if record.get("step") in steps and (not errors or record.get("error") in errors):
                return failure(record)
        return None

    return test


def _stream_refused(case: _Case) -> _Answer:
    """The core could not take the stream of operations: nothing of the workload was done."""
    for record in case.stream.of("fail"):
        # The opening of the stream, and what is made ready for it, have no index among its operations.
        opening = record.get("operation") in ("open", "prepare") and "index" not in record
        if record.get("step") == "ops" and (record.get("operation") == "check" or opening):
            return failure(record)
    return None


def _mount(case: _Case) -> _Answer:
    for record in case.stream.of("fail"):
        if record.get("step") == "mount":
            said = _said_of(case.console, str(record.get("path", ""))) if record.get("operation") == "mount" else ""
            return failure(record) + (f"; the kernel says: {said}" if said else "")
    return None


def _said_of(console: str, device: str) -> str:
    """The kernel's last line about a filesystem or its device, in which it says what the errno does not."""
    name = re.escape(device.rpartition("/")[2] or device)
    lines = re.findall(rf"{_START}({_FILESYSTEMS}.*|.*\b{name}\b.*)$", console, re.MULTILINE)
    return lines[-1] if lines else ""


def _no_end(case: _Case) -> _Answer:
    return None if case.stream.ended else f"the guest ended without its end record; {_where(case)}"


def _not_ok(case: _Case) -> _Answer:
    end = case.stream.records[-1]
    return None if end.get("status") == "ok" else "the guest's end record says it failed, and no record says at what"


def _coarse_clock(case: _Case) -> _Answer:
    for record in case.stream.of("hello"):
        if record.get("clocksource") in ("jiffies", "refined-jiffies"):
            return f"the kernel has no clock but its tick (clocksource {record['clocksource']})"
    return None


# Most specific first.
TABLE: tuple[tuple[str, Callable[[_Case], _Answer]], ...] = (
    ("no-boot", _no_boot),
    ("panic", _panic),
    ("oops", _oops),
    ("infrastructure", _died),
    ("infrastructure", _fault),
    ("hang", _hang),
    ("timeout", _timeout),
    ("no-boot", _never_started),
    ("mount-failed", _mount),
    ("infrastructure", _stream_refused),
    ("workload-failed", _failed(("ops", "command", "umount"))),
    ("corrupt", _failed(("verify",))),
    ("unsupported", _failed(("module",), "ENOENT", "ENOEXEC")),
    # A file of sysfs or configfs, or a filesystem of the kernel's own, that this kernel does not have.
    ("unsupported", _failed(("write", "mkdir", "filesystem"), "ENOENT", "ENODEV")),
    ("infrastructure", _failed(("setup", "module", "disk", "image", "export", "manifest"))),
    ("infrastructure", _failed(("write", "mkdir", "filesystem", "wait", "calibrate"))),
    ("no-result", _no_end),
    ("no-result", _not_ok),
    ("unsupported", _coarse_clock),
)


def decide(console: bytes, stream: Stream, ended: Ended) -> tuple[str, str]:
    """(outcome, reason) of a guest's life; the reason of `ok` is empty."""
    case = _Case(console.decode("utf-8", "replace").replace("\r", ""), stream, ended)
    for outcome, test in TABLE:
        reason = test(case)
        if reason is not None:
            return outcome, " ".join(reason.split())
    return "ok", ""


def warnings(console: bytes) -> list[str]:
    """The kernel's warnings, one a report: they change no outcome, and a reader should know of them.

    Warnings (WARN_ON, lockdep), hung tasks, RCU stalls, UBSAN's reports and programs that were killed for want of
    memory; each by its first line.
    """
    return _WARNING.findall(console.decode("utf-8", "replace").replace("\r", ""))


def failure(record: dict[str, Any]) -> str:
    """A `fail` record as a clause: the operation, its path, the error."""
    name = record.get("operation") or record.get("step", "")
    path = f" {record['path']!r}" if record.get("path") else ""
    error = f": {record['error']} (errno {record.get('errno')})" if record.get("errno") else ""
    place = f" in phase {record['phase']}, operation {record.get('index')}" if record.get("phase") else ""
    message = f": {record['message']}" if record.get("message") else ""
    return f"{name}{path}{error}{place}{message}"


def _where(case: _Case) -> str:
    if not case.stream.records:
        return "no record had come"
    last = case.stream.records[-1]
    name = f" of {last['name']}" if last["type"] == "phase" else ""
    return f"the last record was number {last['seq']}, {last['type']}{name}"


def _last_line(console: str) -> str:
    lines = [line for line in console.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "(nothing on the console)"
