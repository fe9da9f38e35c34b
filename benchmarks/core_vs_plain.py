"""What the core adds to the system calls it replays: its phases against the same loops in a plain C program.

Both run in guests that differ in nothing but this: same kernel, same fresh image, same calls on the same names, each
in a boot of its own. Under the virtual clock the ratio is one of instructions, so load on the host does not matter.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import guests

from fsexp import disk, ops, plan, run
from fsexp.config import Config
from fsexp.vm import guest
from fsexp.vm.guest import Guest

TARGET = 1.02
PLAIN = guests.ROOT / "benchmarks" / "plain"
PHASES = ("create", "delete")


def main() -> int:
    """Boot both for each filesystem and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nfiles", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3, help="boots of each (default: 3)")
    options = parser.parse_args()
    config = guests.study()
    subprocess.run(["make", "--silent", "-C", PLAIN], check=True)
    rows, worst = [], 0.0
    first = next(plan.runs(config)).kernel
    for one in plan.runs(config):
        if one.kernel != first or one.seed > options.seeds:
            continue
        core = _core(config, one, options.nfiles)
        plain = _plain(config, one, options.nfiles)
        for phase in PHASES:
            ratio = core[phase] / plain[phase]
            worst = max(worst, ratio)
            rows.append((f"{one.filesystem}, {phase}", one.seed, core[phase], plain[phase], f"{ratio:.5f}"))
    title = f"{options.nfiles} files, {first}, virtual clock: ns of a phase"
    guests.show(title, ("phase", "seed", "core", "plain C", "ratio"), rows)
    return guests.verdict("largest ratio", worst, TARGET)


def _core(config: Config, one: plan.Run, nfiles: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        stream = Path(folder, "ops")
        ops.write(stream, _calls(nfiles))
        records = _boot(config, one, lambda made: made.ops(stream))
    return {record["name"]: record["elapsed_ns"] for record in records if record["type"] == "phase"}


def _plain(config: Config, one: plan.Run, nfiles: int) -> dict[str, int]:
    program = (PLAIN / "build" / "create_unlink").read_bytes()

    def say(made: Guest) -> None:
        made.file("plain", program, executable=True)
        made.command(["/plain", str(nfiles), "d"], guest.MOUNTPOINT)

    records = _boot(config, one, say)
    output = next(record["output"] for record in records if record["type"] == "command")
    return {name: int(ns) for name, ns in (line.split() for line in output.splitlines())}


def _calls(nfiles: int):  # noqa: ANN202 - encoded operations
    """The calls of plain/create_unlink.c, in its order, with its modes."""
    yield ops.mkdir("d", 0o755)
    yield ops.chdir("d")
    yield ops.phase("create")
    yield from (ops.create(str(name), 0o644) for name in range(nfiles))
    yield ops.phase_end()
    yield ops.phase("delete")
    yield from (ops.unlink(str(name)) for name in range(nfiles))
    yield ops.phase_end()
    yield ops.chdir("..")
    yield ops.rmdir("d")


def _boot(config: Config, one: plan.Run, say) -> list[dict]:  # noqa: ANN001 - Callable[[Guest], None]
    found = guests.inputs(config, one)
    filesystem = config.filesystems[one.filesystem]
    kernel = guest.read_kernel(found.kernel)
    made = Guest(kernel, found.core)
    layout = disk.layout(config.disks[one.disk], filesystem.disk_mib)
    made.disks(layout)
    made.image(found.image)
    made.mount(filesystem.type, filesystem.mount)
    say(made)
    made.umount()
    result, files = run.start(config, run.described(config, made, layout, one.seed))
    shutil.rmtree(files)
    if result["outcome"] != "ok":
        raise SystemExit(f"{one.folder}: {result['outcome']}: {result['reason']}")
    return result["records"]


if __name__ == "__main__":
    sys.exit(main())
