"""Guests that are broken on purpose, each in its own way: the outcome says how, and no figure is given.

All runs of a table are made first, two at a time.
"""

import csv
import json
import os
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import damage
import pytest
from bench import CORE, NEW, OLD, Bench, experiment, initramfs, processes, qemus, session_folder

from fsexp import digest, disk, manifest, plan, run, whole
from fsexp import ops as op
from fsexp.image import formats
from fsexp.image.initramfs import Initramfs
from fsexp.pattern import Pattern
from fsexp.vm import domain, guest

pytestmark = pytest.mark.vm

# Longer than a busy machine may leave a booting guest without a time slice.
HANG_S = 20
TIMEOUT_S = 60
CREATE = {"name": "create-unlink", "nfiles": 5}


def fault(kind):
    return {"name": "fault", "kind": kind}


@dataclass(frozen=True)
class Case:
    """A run that must not end ok.

    reason: a pattern that all of it matches. inputs: makes inputs other than the study's (option of `fsexp run` ->
    path) in a new folder. records: the types of the records in run.json.
    """

    workload: dict
    outcome: str
    reason: str
    kernel: str = OLD
    filesystem: str = "ext4"
    inputs: object = None
    limits: dict = field(default_factory=dict)
    records: tuple = ()
    status: int = 0


def bad_superblock(bench, folder):
    path = damage.copy_image(bench.image(), folder)
    damage.overwrite_superblock(path)
    return {"image": path}


def bad_checksum(bench, folder):
    path = damage.copy_image(bench.image(), folder)
    damage.flip_checksum(path)
    return {"image": path}


def cut_operations(bench, folder):
    folder.mkdir()
    whole = bench.results / "ops" / f"{plan.ops_key(bench.config.experiments['ok'])}.ops"
    path = folder / "cut.ops"
    path.write_bytes(whole.read_bytes()[:-3])
    return {"ops": path}


def no_program(_, folder):
    folder.mkdir()
    path = folder / "core"
    path.write_bytes(b"this is no program\n")
    return {"core": path}


def oops_of(kernel):
    def make(bench, folder):
        path = bench.copy_kernel(kernel, folder)
        damage.make_oops(path, "mbcache")
        return {"kernel": path}

    return make


def without_ext4(bench, folder):
    path = bench.copy_kernel(OLD, folder)
    damage.drop_module(path, "ext4")
    return {"kernel": path}


def unavailable(_, folder):
    folder.mkdir()
    path = folder / "kernel.json"
    path.write_text(json.dumps({"format": 1, "unavailable": "The mirror has no Debian suite ⟨none⟩."}))
    return {"kernel": path}


def lost_write(at_mib):
    """A disk that lost a write of the workload's file: what it held before, zeros, is put back while nobody has it."""
    mib = 2**20
    written = [
        op.open(0, "file", os.O_WRONLY | os.O_CREAT, 0o644), op.write_data(0, Pattern.RANDOM, 1, 96 * mib),
        op.close(0), op.phase("create"), op.phase_end(), op.phase("delete"), op.phase_end(),
    ]  # fmt: skip
    lost = [
        op.remount(), op.open(1, "/dev/ram0", os.O_RDWR), op.read_data(1, at_mib * mib),
        op.write_data(1, Pattern.ZEROS, 0, mib), op.fsync(1), op.close(1), op.remount(), op.verify("/fsexp/manifest"),
    ]  # fmt: skip

    def make(bench, folder):
        folder.mkdir()
        op.write(folder / "whole.ops", [*written, op.verify("/fsexp/manifest")])
        ((place, expected),) = manifest.asked_for(folder / "whole.ops")
        sha256 = op.write(folder / "lost.ops", written + lost)
        # Where a run looks for it: what happens to the disk itself is nothing that a stream tells.
        kept = bench.folder / "cache" / "manifests" / f"{manifest.FORMAT}-{sha256}.json"
        whole.write_json(kept, {place: expected.decode("ascii")})
        return {"ops": folder / "lost.ops"}

    return make


TO_THE_MOUNT = ("hello", "modules", "image", "modules")
TO_THE_FAULT = (*TO_THE_MOUNT, "mount", "space", "phase", "operations", "space")
TO_THE_END = (*TO_THE_MOUNT, "mount", "space", "phase", "space", "phase", "space", "caches", "caches")
FAILED = ("fail", "end")
LAST = r"the last record was number 8, space"

CASES = {
    "crash": Case(fault("crash"), "panic", r"Kernel panic - not syncing: sysrq triggered crash"),
    "crash on a new kernel": Case(
        fault("crash"), "panic", r"Kernel panic - not syncing: sysrq triggered crash", kernel=NEW
    ),
    "exit": Case(fault("exit"), "panic", r"Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"),
    "spin": Case(
        fault("spin"), "hang", rf"no record and no console byte for {HANG_S} s; {LAST}", limits={"hang_s": HANG_S}
    ),
    "silence": Case(
        fault("silence"), "hang", rf"no record and no console byte for {HANG_S} s; {LAST}", limits={"hang_s": HANG_S}
    ),
    # The inputs are those of "spin": what the host's limits decided there must not be taken from the cache.
    "too slow": Case(
        fault("spin"), "timeout", rf"it ran for more than {TIMEOUT_S} s; {LAST}", limits={"timeout_s": TIMEOUT_S}
    ),
    "too slow to boot": Case(
        CREATE,
        "no-boot",
        r"it ran for more than 0\.5 s; the kernel did not reach the core; .*",
        limits={"timeout_s": 0.5},
    ),
    "no program": Case(CREATE, "no-boot", r"Kernel panic - not syncing: No working init found\..*", inputs=no_program),
    "oops": Case(
        CREATE,
        "oops",
        r"invalid opcode: 0000 \[#1\].*",
        inputs=oops_of(OLD),
        records=("hello", "modules", "image", *FAILED),
    ),
    "oops on a new kernel": Case(
        CREATE,
        "oops",
        r"Oops: invalid opcode: 0000 \[#1\].*",
        kernel=NEW,
        inputs=oops_of(NEW),
        records=("hello", "modules", "image", *FAILED),
    ),
    "bad superblock": Case(
        CREATE,
        "mount-failed",
        r"mount '/dev/ram0': EINVAL \(errno 22\): .*; the kernel says: EXT4-fs \(ram0\): .*",
        inputs=bad_superblock,
        records=(*TO_THE_MOUNT, *FAILED),
    ),
    "no such file": Case(
        fault("no-such-file"),
        "workload-failed",
        r"unlink 'no/such/file': ENOENT \(errno 2\) in phase during, operation 4: .*",
        records=(*TO_THE_FAULT, *FAILED),
    ),
    "exists": Case(
        fault("exists"),
        "workload-failed",
        r"mkdir 'before': EEXIST \(errno 17\) in phase during, operation 4: .*",
        records=(*TO_THE_FAULT, *FAILED),
    ),
    "power off": Case(fault("power-off"), "no-result", rf"the guest ended without its end record; {LAST}"),
    "garble": Case(fault("garble"), "infrastructure", r"record 9 is damaged: .*", status=2),
    "repeat": Case(
        fault("repeat"),
        "infrastructure",
        r"record 9 is numbered 8: one was lost, repeated or moved",
        status=2,
    ),
    "skip": Case(
        fault("skip"), "infrastructure", r"record 9 is numbered 10: one was lost, repeated or moved", status=2
    ),
    # ext4 does not know what it should hold; btrfs finds another sum, and gives nothing.
    "lost write on ext4": Case(
        CREATE,
        "corrupt",
        r"content 'file': content: its CRC-32 is [0-9a-f]{8} and not [0-9a-f]{8}",
        inputs=lost_write(64),
        records=(*TO_THE_END, *FAILED),
    ),
    "lost write on btrfs": Case(
        CREATE,
        "corrupt",
        r"read 'file': EIO \(errno 5\): .*",
        filesystem="btrfs",
        inputs=lost_write(140),
        records=(*TO_THE_END, *FAILED),
    ),
    "cut operations": Case(
        CREATE,
        "infrastructure",
        r"check '/fsexp/ops': .*",
        inputs=cut_operations,
        records=(*TO_THE_MOUNT, "mount", "space", *FAILED),
        status=2,
    ),
    "bad checksum": Case(
        CREATE,
        "infrastructure",
        r".*checksum.*",
        inputs=bad_checksum,
        records=("hello", "modules", *FAILED),
        status=2,
    ),
}
# Nothing is booted for these.
UNBOOTED = {
    "no module": Case(CREATE, "unsupported", r".*ext4.*", inputs=without_ext4),
    "no kernel": Case(CREATE, "no-kernel", r"The mirror has no Debian suite ⟨none⟩\.", inputs=unavailable),
}
ALL = CASES | UNBOOTED


@pytest.fixture(scope="module")
def bench(prepared):
    """The prepared study, with an experiment for each case."""
    made = Bench(
        prepared.folder,
        {name: experiment(case.workload, [case.kernel], [case.filesystem]) for name, case in ALL.items()}
        | {"until stopped": experiment(fault("spin")), "ok": experiment(CREATE)},
        name="faults.yaml",
    )
    made.make_ops()
    return made


def make(bench, name):
    """Make a case's run; returns what `fsexp run` wrote."""
    case = ALL[name]
    extra = bench.file(f"limits of {name}.yaml", {"limits": case.limits})
    options = ["--config", bench.path, "--config", extra]
    if case.inputs:
        for option, path in case.inputs(bench, bench.folder / "inputs" / name).items():
            options += [f"--{option}", path]
    return bench.fsexp("run", "--run", bench.planned(name).folder, *options, status=case.status)


@pytest.fixture(scope="module")
def made(bench, request):
    """Name -> a future of what `fsexp run` wrote, for the cases that are tested in this session."""
    (bench.folder / "inputs").mkdir(exist_ok=True)
    wanted = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    with ThreadPoolExecutor(2) as pool:
        yield {name: pool.submit(make, bench, name) for name in ALL if name in wanted}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", ALL)
def test_outcome(bench, made, name):
    said = made[name].result()
    case = ALL[name]
    result, folder = bench.result(bench.planned(name))
    assert result["outcome"] == case.outcome, result["reason"]
    assert re.fullmatch(case.reason, result["reason"]), result["reason"]
    assert result["reason"] in said
    assert tuple(record["type"] for record in result["records"]) == case.records
    if name in UNBOOTED:
        assert not (folder / "console.log").read_bytes()
        assert result["identity"] is None
        return
    assert (folder / "console.log").stat().st_size or name == "too slow to boot"
    session = session_folder(initramfs(folder / "domain.xml"))
    assert not session.exists()
    assert not processes(session)


def test_no_figures(bench, made, tmp_path):
    for future in made.values():
        future.result()
    bench.fsexp("plan", "--output", tmp_path / "plan.json")
    bench.fsexp("tables", "--plan", tmp_path / "plan.json", "--output", tmp_path / "tables")
    rows = {}
    tables = ("phases", "operations", "commands", "space")
    for table in ("runs", *tables):
        with (tmp_path / "tables" / f"{table}.csv").open(newline="", encoding="utf-8") as file:
            rows[table] = list(csv.DictReader(file))
    outcomes = {row["experiment"]: row["outcome"] for row in rows["runs"]}
    assert {name: outcomes[name] for name in made} == {name: ALL[name].outcome for name in made}
    assert not [row for table in tables for row in rows[table] if row["experiment"] in made]


def test_nothing_is_left(bench, made):
    for future in made.values():
        future.result()
    assert not qemus(bench.folder)
    assert not list((bench.folder / "cache").glob(".[rk]*"))


def boot(bench, directives):
    """Boot an initramfs made by hand on the new kernel: (result, console)."""
    kernel = guest.read_kernel(bench.kernel(NEW))
    settings = bench.config.machine.model_dump()
    booting = run.Booting(
        kernel,
        directives,
        domain.command_line(settings, disk.arguments(disk.ram(256))),
        domain.machine(settings),
        domain.seed_uuid(1),
    )
    made = bench.config.model_copy(update={"cache": str(bench.folder / "cache")})
    result, files = run.start(made, booting)
    console = (files / "console.log").read_text(errors="replace")
    for file in files.iterdir():
        file.unlink()
    files.rmdir()
    return result, console


def test_no_init(bench):
    archive = Initramfs()
    archive.folder("dev")
    archive.character_device("dev/console", 5, 1)
    result, console = boot(bench, archive.pack())
    assert result["outcome"] == "no-boot"
    assert re.search(r"Unable to mount root fs|Cannot open root device", result["reason"])
    assert "Kernel panic" in console
    assert result["records"] == []


def test_a_kernel_that_qemu_refuses(bench, monkeypatch):
    kernel = bench.copy_kernel(NEW, "inputs/refused by QEMU")
    image = guest.read_kernel(kernel).image
    image.unlink()
    image.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(5000))  # begins as a kernel does, and is cut short
    description = json.loads(kernel.read_text())
    description["image"]["sha256"] = digest.of_file(image)
    kernel.unlink()  # a link to the description of the kernel that is whole
    kernel.write_text(json.dumps(description))
    one = bench.planned("ok")
    output = bench.folder / "refused" / "run.json"
    bench.fsexp("run", "--run", one.folder, "--kernel", kernel, "--output", output)
    result = json.loads(output.read_text())
    assert result["outcome"] == "no-boot"
    assert result["reason"] == "QEMU does not take the kernel: Error while loading elf kernel"
    assert result["records"] == []


def test_filesystem_unknown_to_the_kernel(bench, monkeypatch):
    # Left out of the modules and of what the kernel may ask for, as by a kernel that has no such filesystem.
    monkeypatch.setitem(formats.FORMATS, "ext4", replace(formats.FORMATS["ext4"], modules=()))
    kernel = bench.copy_kernel(NEW, "inputs/no filesystem")
    damage.drop_module(kernel, "ext4")
    made = guest.Guest(guest.read_kernel(kernel), CORE)
    made.disks(disk.ram(256))
    made.image(bench.image())
    made.mount("ext4", "")
    result, _ = boot(bench, made.pack())
    assert result["outcome"] == "mount-failed"
    assert re.fullmatch(r"mount '/dev/ram0': ENODEV \(errno 19\): .*", result["reason"])


# -- a run that is stopped from outside


def wait_for(what, seconds=60):
    """The first true value of `what()`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = what()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"nothing within {seconds} s")


class Running:
    """`fsexp run` of a guest that never ends, on a kernel of its own, so that its QEMU can be told from others."""

    def __init__(self, bench, name):
        self.kernel = bench.copy_kernel(OLD, f"inputs/{name}")
        self.one = bench.planned("until stopped")
        self.output = bench.folder / "stopped" / name / "run.json"
        self.process = bench.start(
            "run", "--run", self.one.folder, "--kernel", self.kernel, "--output", self.output
        )  # fmt: skip
        found = wait_for(lambda: qemus(self.kernel.parent) or self.process.poll() is not None)
        assert isinstance(found, dict), self.process.communicate()
        (self.qemu,) = found
        booted = found[self.qemu].split("-initrd ", 1)[1].split(" ", 1)[0]
        self.records = Path(booted).with_name("records.jsonl")
        self.session = session_folder(booted)

    def wait_for_phase(self):
        wait_for(lambda: b'"type":"phase"' in self.records.read_bytes())

    def left(self):
        """What of it is still there."""
        return [*processes(self.session).values(), *([self.session] if self.session.exists() else [])]

    def ended(self):
        """(exit status, what it wrote)."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out + err


@pytest.fixture
def running(bench, request):
    made = Running(bench, request.node.name)
    yield made
    if made.process.poll() is None:
        made.process.kill()
        made.process.communicate()
    for number in processes(made.session):
        os.kill(number, signal.SIGKILL)


def test_qemu_killed(bench, running):
    running.wait_for_phase()
    os.kill(running.qemu, signal.SIGKILL)
    status, said = running.ended()
    assert status == 2
    result = json.loads(running.output.read_text())
    assert result["outcome"] == "infrastructure"
    assert "QEMU ended without the guest's word" in result["reason"]
    assert result["reason"] in said
    assert result["records"] == []
    assert b"EXT4-fs" in running.output.with_name("console.log").read_bytes()
    assert not running.left()


def test_fsexp_killed(running):
    running.wait_for_phase()
    running.process.kill()
    running.ended()
    wait_for(lambda: not running.left())
    assert not running.output.exists()


def test_ctrl_c(running):
    running.wait_for_phase()
    os.killpg(running.process.pid, signal.SIGINT)
    status, said = running.ended()
    assert (status, said) == (130, "fsexp: interrupted; nothing is left running\n")
    assert not running.left()
    assert not running.output.exists()


def test_terminated_while_booting(running):
    running.process.terminate()
    status, said = running.ended()
    assert (status, said) == (130, "fsexp: interrupted; nothing is left running\n")
    assert not running.left()
    assert not running.output.exists()


def test_again_finds_a_difference(bench):
    one = bench.planned("ok")
    bench.fsexp("run", "--run", one.folder)
    result, folder = bench.result(one)
    assert result["outcome"] == "ok"
    before = (folder / "run.json").read_bytes()
    kept = bench.folder / "cache" / "runs" / result["identity"] / "result.json"
    content = json.loads(kept.read_text())
    phase = next(record for record in content["records"] if record["type"] == "phase")
    phase["elapsed_ns"] += 1
    kept.write_text(json.dumps(content))
    said = bench.fsexp("run", "--run", one.folder, "--again", status=2)
    assert "the same inputs gave other records" in said
    assert (folder / "run.json").read_bytes() == before
    assert not list((bench.folder / "cache").glob(".[rk]*"))
