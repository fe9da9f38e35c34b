"""How a run ended, from consoles and records that real guests left, and from some made up to see which row wins."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsexp.vm import outcome, record
from fsexp.vm.outcome import Ended

CONSOLES = Path(__file__).resolve().parents[1] / "data" / "consoles"
OFF = Ended("power-off")
DIED = Ended("died", "QEMU ended without the guest's word; QEMU says: Bad address")
HANG = Ended("hang", "no record and no console byte for 15 s")
TIMEOUT = Ended("timeout", "it ran for more than 9 s")

# Console and records (the file's name), how the host saw it end, outcome, a pattern for all of the reason.
REAL = [
    ("ok-6.1", OFF, "ok", ""),
    ("panic-6.1", OFF, "panic", "Kernel panic - not syncing: sysrq triggered crash"),
    ("panic-7.3", OFF, "panic", "Kernel panic - not syncing: sysrq triggered crash"),
    ("init-exits-6.1", OFF, "panic", r"Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"),
    (
        "no-init-6.1",
        OFF,
        "no-boot",
        r"Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block\(0,0\)",
    ),
    ("no-init-7.3", OFF, "no-boot", r'VFS: Cannot open root device "" or unknown-block\(0,0\): error -19'),
    ("init-is-no-program-6.1", OFF, "no-boot", r"Kernel panic - not syncing: No working init found\..*guidance\."),
    (
        "cut-while-booting-6.1",
        TIMEOUT,
        "no-boot",
        r"it ran for more than 9 s; the kernel did not reach the core; its last line was: \[ 0\.356944\] .*",
    ),
    (
        "cut-while-booting-6.1",
        OFF,
        "no-boot",
        r"the guest ended before the core's first record; its last line was: \[ 0\.356944\] .*",
    ),
    ("cut-while-booting-6.1", DIED, "infrastructure", re.escape(DIED.detail)),
    ("oops-6.1", OFF, "oops", r"invalid opcode: 0000 \[#1\] PREEMPT SMP PTI"),
    ("oops-7.3", OFF, "oops", r"Oops: invalid opcode: 0000 \[#1\] SMP PTI"),
    ("silence-6.1", HANG, "hang", r"no record .* for 15 s; the last record was number 7, space"),
    ("silence-6.1", TIMEOUT, "timeout", r"it ran for more than 9 s; the last record was number 7, space"),
    ("silence-6.1", DIED, "infrastructure", re.escape(DIED.detail)),
    (
        "mount-refused-6.1",
        OFF,
        "mount-failed",
        r"mount '/dev/ram0': EINVAL \(errno 22\): mount failed: Invalid argument; "
        r"the kernel says: EXT4-fs \(ram0\): VFS: Can't find ext4 filesystem",
    ),
    ("module-refused-6.1", OFF, "unsupported", r"init_module '/fsexp/modules/mbcache\.ko': ENOEXEC \(errno 8\): .*"),
    (
        "file-missing-6.1",
        OFF,
        "workload-failed",
        r"unlink 'no/such/file': ENOENT \(errno 2\) in phase during, operation 4: .*",
    ),
    (
        "power-off-6.1",
        OFF,
        "no-result",
        r"the guest ended without its end record; the last record was number 7, space",
    ),
    ("garbled-6.1", OFF, "infrastructure", r"record 8 is damaged: .*"),
    ("repeated-6.1", OFF, "infrastructure", r"record 8 is numbered 7: one was lost, repeated or moved"),
    ("skipped-6.1", OFF, "infrastructure", r"record 8 is numbered 9: one was lost, repeated or moved"),
    ("image-damaged-6.1", OFF, "infrastructure", r".*the image is damaged: its checksum is wrong"),
]


def real(name):
    """(console, records) as bytes."""
    records = CONSOLES / f"{name}.jsonl"
    return (CONSOLES / f"{name}.log").read_bytes(), records.read_bytes() if records.exists() else b""


@pytest.mark.parametrize(("name", "ended", "word", "reason"), REAL, ids=lambda value: getattr(value, "how", None))
def test_real(name, ended, word, reason):
    console, records = real(name)
    got, why = outcome.decide(console, record.parse(records), ended)
    assert got == word, why
    assert re.fullmatch(reason, why), why


def test_every_console_is_used():
    assert {path.stem for path in CONSOLES.iterdir()} == {name for name, *_ in REAL}


@pytest.mark.parametrize("name", sorted({name for name, *_ in REAL}))
def test_consoles_have_nothing_of_the_host(name):
    console, _ = real(name)
    assert not re.search(rb"/(tmp|home|root|work|usr/share|var)/", console)


# -- made up

HELLO = {"seq": 0, "type": "hello"}
PHASE = {"seq": 1, "type": "phase", "name": "create", "elapsed_ns": 1}


def stream(*members):
    """The members as records in order; `seq` is put in."""
    return record.parse(b"".join(record.seal({"seq": number, **one}) for number, one in enumerate(members)))


def end(number, status="ok"):
    return {"seq": number, "type": "end", "status": status, "records": number + 1}


def failed(step, error="EIO", operation="x"):
    return {"type": "fail", "step": step, "operation": operation, "path": "/p", "errno": 5, "error": error}


WHOLE = stream(HELLO, PHASE, end(2))
BEGUN = stream(HELLO, PHASE)
NONE = record.parse(b"")
OOPS = "[    1.0] Oops: invalid opcode: 0000 [#1] SMP PTI\r\n"
PANIC = "[    2.0] Kernel panic - not syncing: Fatal exception\r\n"
NO_INIT = "[    2.0] Kernel panic - not syncing: No working init found.\r\n"


def decide(console, records, ended=OFF):
    return outcome.decide(console.encode(), records, ended)


MADE_UP = {
    "whole": ("", WHOLE, OFF, "ok"),
    # Linux 2.6.39.4 in its first second, without a PM timer: every time came in whole milliseconds.
    "no clock but the tick": ("", stream({"type": "hello", "clocksource": "jiffies"}, end(1)), OFF, "unsupported"),
    "a fine clock": ("", stream({"type": "hello", "clocksource": "acpi_pm"}, end(1)), OFF, "ok"),
    "nothing at all": ("", NONE, OFF, "no-boot"),
    "nothing, given up": ("", NONE, HANG, "no-boot"),
    "nothing, QEMU died": ("", NONE, DIED, "infrastructure"),
    # A crash comes before what follows from it.
    "oops in a whole run": (OOPS, WHOLE, OFF, "oops"),
    "oops, then panic": (OOPS + PANIC, BEGUN, OFF, "panic"),
    "oops, then hang": (OOPS, BEGUN, HANG, "oops"),
    "oops, then a failed mount": (OOPS, stream(HELLO, failed("mount"), end(2, "failed")), OFF, "oops"),
    "oops before the core": (OOPS, NONE, OFF, "oops"),
    "panic before the core": (PANIC, NONE, OFF, "panic"),
    "panic cut the records": (PANIC, record.parse(record.seal(HELLO) + b'{"seq":1,"ty'), OFF, "panic"),
    "panic, then no restart": (PANIC, BEGUN, HANG, "panic"),
    "panic after the last record": (PANIC, WHOLE, OFF, "panic"),
    # Once the core ran, "no init" can't be why.
    "no init": (NO_INIT, NONE, OFF, "no-boot"),
    "no init, says a later line": (NO_INIT, BEGUN, OFF, "panic"),
    # What was cut by the end of the guest is not the port's fault.
    "cut by the host": ("", record.parse(record.seal(HELLO) + b'{"seq":1,"ty'), HANG, "hang"),
    "cut by the host in time": ("", record.parse(record.seal(HELLO) + b'{"seq":1,"ty'), TIMEOUT, "timeout"),
    "cut by itself": ("", record.parse(record.seal(HELLO) + b'{"seq":1,"ty'), OFF, "infrastructure"),
    "garbled before the first record": ("", record.parse(b"\xff\x00{\n"), OFF, "infrastructure"),
    "whole, QEMU died": ("", WHOLE, DIED, "infrastructure"),
    "whole, not powered off": ("", WHOLE, HANG, "hang"),
    # Steps.
    "module unknown": ("", stream(HELLO, failed("module", "ENOENT"), end(2, "failed")), OFF, "unsupported"),
    "module refused": ("", stream(HELLO, failed("module", "ENOMEM"), end(2, "failed")), OFF, "infrastructure"),
    "no disk": ("", stream(HELLO, failed("disk"), end(2, "failed")), OFF, "infrastructure"),
    "mount": ("", stream(HELLO, failed("mount"), end(2, "failed")), OFF, "mount-failed"),
    "operation": ("", stream(HELLO, failed("ops"), end(2, "failed")), OFF, "workload-failed"),
    # The stream itself, which is ours and no finding about the filesystem.
    "damaged operations": ("", stream(HELLO, failed("ops", "", "check"), end(2, "failed")), OFF, "infrastructure"),
    "no operations": ("", stream(HELLO, failed("ops", "ENOENT", "open"), end(2, "failed")), OFF, "infrastructure"),
    "an open of the workload": (
        "",
        stream(HELLO, failed("ops", "ENOENT", "open") | {"index": 3, "phase": "p"}, end(2, "failed")),
        OFF,
        "workload-failed",
    ),
    "program": ("", stream(HELLO, failed("command"), end(2, "failed")), OFF, "workload-failed"),
    "umount": ("", stream(HELLO, failed("umount"), end(2, "failed")), OFF, "workload-failed"),
    "lost data": ("", stream(HELLO, failed("verify"), end(2, "failed")), OFF, "corrupt"),
    "nothing to compare with": ("", stream(HELLO, failed("manifest"), end(2, "failed")), OFF, "infrastructure"),
    "a step unknown here": ("", stream(HELLO, failed("dance"), end(2, "failed")), OFF, "no-result"),
    "failed without a word": ("", stream(HELLO, PHASE, end(2, "failed")), OFF, "no-result"),
    "failed, then cut": ("", stream(HELLO, failed("mount")), OFF, "mount-failed"),
    "no end": ("", BEGUN, OFF, "no-result"),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_made_up(name):
    console, records, ended, word = MADE_UP[name]
    got, reason = decide(console, records, ended)
    assert got == word, reason
    assert bool(reason) == (word != "ok")
    assert "\n" not in reason and "\r" not in reason


def test_panic_names_the_oops_before_it():
    _, reason = decide(OOPS + PANIC, BEGUN)
    assert reason == "Oops: invalid opcode: 0000 [#1] SMP PTI; Kernel panic - not syncing: Fatal exception"
    _, reason = decide(PANIC + OOPS, BEGUN)
    assert reason == "Kernel panic - not syncing: Fatal exception"


# What kernels of 2.6.39 and later print, with and without the time, and by the level's number where it is shown.
@pytest.mark.parametrize("start", ["", "[    0.123456] ", "<4>[    1.2] ", "[    1.234567][    T1] ", "[12345.6] "])
@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("BUG: unable to handle kernel NULL pointer dereference at 0000000000000008", "oops"),
        ("BUG: unable to handle kernel paging request at ffffc90000000000", "oops"),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000000", "oops"),
        ("BUG: unable to handle page fault for address: ffffffffffffffd8", "oops"),
        ("kernel BUG at fs/btrfs/inode.c:1234!", "oops"),
        ("general protection fault: 0000 [#1] SMP", "oops"),
        ("general protection fault, probably for non-canonical address 0xdead: 0000 [#1] PREEMPT SMP", "oops"),
        ("invalid opcode: 0000 [#1] PREEMPT SMP", "oops"),
        ("divide error: 0000 [#2] SMP", "oops"),
        ("Oops: 0002 [#1] SMP", "oops"),
        ("Kernel panic - not syncing: Attempted to kill init!", "panic"),
        # Documentation/dev-tools/kasan.rst, kfence.rst, kcsan.rst, kmsan.rst; admin-guide/bug-hunting.rst.
        ("BUG: KASAN: slab-out-of-bounds in kmalloc_oob_right+0xa8/0xbc [test_kasan]", "oops"),
        ("BUG: KFENCE: out-of-bounds read in test_out_of_bounds_read+0xa6/0x234", "oops"),
        ("BUG: KCSAN: data-race in test_kernel_read / test_kernel_write", "oops"),
        ("BUG: KMSAN: uninit-value in test_uninit_kmsan_check_memory+0x1be/0x380 [kmsan_test]", "oops"),
        ("BUG: unable to handle kernel NULL pointer dereference at   (null)", "oops"),
        # As reported for 2.6.36, and for 6.3.
        ("BUG: soft lockup - CPU#0 stuck for 61s! [kswapd0:184]", "oops"),
        ("watchdog: BUG: soft lockup - CPU#1 stuck for 85s! [kworker/1:0:707]", "oops"),
        ("[Firmware Bug]: TSC ADJUST: CPU0: -1 force to 0", "ok"),
        ("------------[ cut here ]------------", "ok"),
        ("WARNING: CPU: 0 PID: 1 at fs/ext4/inode.c:1 x+0x1/0x2", "ok"),
        ("traps: program[88] general protection fault ip:401000 sp:7ffc0 error:0 in program[400000+1000]", "ok"),
        ("traps: program[88] trap invalid opcode ip:401000 sp:7ffc0 error:0", "ok"),
        ("program[88]: segfault at 0 ip 401000 sp 7ffc0 error 4 in program[400000+1000]", "ok"),
        # The core quotes names that a workload chose; its lines are no word of the kernel.
        ("fsexp: unlink 'Kernel panic - not syncing: Oops: 0000 [#1]': no such file", "ok"),
        (" fsexp: kernel BUG at ", "ok"),
    ],
)
def test_lines(start, line, word):
    console = f"[    0.1] Linux version\r\n{start}{line}\r\n[    0.3] more\r\n"
    got, reason = decide(console, WHOLE)
    assert got == word
    assert reason == ("" if word == "ok" else " ".join(line.split()))


# Documentation/admin-guide/bug-hunting.rst (4.8) and the form since 6.19; dev-tools/ubsan.rst; RCU/stallwarn.rst;
# a hung task as 2.6.38 printed it.
WARNINGS = [
    "WARNING: CPU: 1 PID: 28102 at kernel/module.c:1108 module_put+0x57/0x70",
    "WARNING: kernel/module.c:1108 at module_put+0x57/0x70, CPU#1: rmmod/28102",
    "WARNING: possible circular locking dependency detected",
    "UBSAN: Undefined behaviour in ../include/linux/bitops.h:110:33",
    "Out of memory: Killed process 88 (dd) total-vm:3572kB, anon-rss:988kB, file-rss:4kB, shmem-rss:1416kB, UID:0 "
    "pgtables:52kB oom_score_adj:0",
    "INFO: task jbd2/sda2-8:349 blocked for more than 120 seconds.",
    "INFO: rcu_sched detected stalls on CPUs/tasks:",
    "rcu: INFO: rcu_preempt self-detected stall on CPU",
]


@pytest.mark.parametrize("start", ["", "[    0.123456] ", "<4>[    1.2] "])
@pytest.mark.parametrize("line", WARNINGS)
def test_a_warning_is_noted_and_changes_nothing(start, line):
    console = f"{start}Linux version\r\n{start}{line}\r\n{start}Modules linked in: brd\r\n{start}{line}\r\n"
    assert outcome.warnings(console.encode()) == [line, line]
    assert decide(console, WHOLE) == ("ok", "")


@pytest.mark.parametrize(
    "line",
    [
        "Spectre V2 : WARNING: Unprivileged eBPF is enabled with eIBRS on",
        "fsexp: WARNING: a workload's words",
        "INFO: lockdep is turned off.",
    ],
)
def test_what_is_no_warning(line):
    assert outcome.warnings(f"[    1.0] {line}\n".encode()) == []


@pytest.mark.parametrize("name", sorted({name for name, _, word, _ in REAL if word == "ok"}))
def test_a_good_run_has_no_warnings(name):
    assert outcome.warnings(real(name)[0]) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        # btrfs named the device in an earlier line or not at all (fs/btrfs/super.c of 2.6.3x); newer ones name it.
        (["device fsid 1 devid 1 transid 4 /dev/ram0", "btrfs: open_ctree failed"], "btrfs: open_ctree failed"),
        (["BTRFS error (device ram0): open_ctree failed: -22"], "BTRFS error (device ram0): open_ctree failed: -22"),
        (["XFS (ram0): bad magic number", "XFS (ram0): SB validate failed with error -22."],
         "XFS (ram0): SB validate failed with error -22."),
        (["brd: module loaded", "EXT4-fs (vda): mounted"], "EXT4-fs (vda): mounted"),
        (["brd: module loaded", "ACPI: PM: Preparing to enter system sleep state S5"], None),
    ],
)  # fmt: skip
def test_a_refused_mount_has_the_kernels_words(lines, said):
    console = "".join(f"[    0.8] {line}\r\n" for line in [*lines, "fsexp: mount /dev/ram0: mount failed: x"])
    refused = failed("mount", "EINVAL", "mount") | {"path": "/dev/ram0"}
    word, reason = decide(console, stream(HELLO, refused, end(2, "failed")))
    assert word == "mount-failed"
    assert reason.partition("; the kernel says: ")[2] == (said or "")


def test_bytes_that_are_no_text():
    console = b"\xff\xfe\x00[    1.0] \x80\x81\r\n[    2.0] Kernel panic - not syncing: \xc3\x28 \xff\r\n"
    word, reason = outcome.decide(console, BEGUN, OFF)
    assert word == "panic"
    assert reason.startswith("Kernel panic - not syncing: ")
    reason.encode()


@given(st.binary(max_size=300), st.sampled_from([NONE, BEGUN, WHOLE]), st.sampled_from([OFF, DIED, HANG, TIMEOUT]))
def test_never_raises(console, records, ended):
    word, reason = outcome.decide(console, records, ended)
    assert word in outcome.OUTCOMES
    assert bool(reason) == (word != "ok")


@given(st.binary(max_size=200))
def test_any_records(data):
    word, _ = outcome.decide(b"", record.parse(data), OFF)
    assert word in ("no-boot", "infrastructure")


def test_a_long_line_takes_no_time():
    # A pattern that went back over the line for each of its characters would take minutes.
    word, _ = decide("[    1.0] " + "a: 0000 [#" * 100_000, WHOLE)
    assert word == "ok"


def test_every_word_has_a_meaning():
    assert set(outcome.OUTCOMES) - outcome.MADE == {"missing"}
    assert {word for word, _ in outcome.TABLE} <= set(outcome.OUTCOMES)
