"""Each common format on each kernel: made, written, mounted again, checked by the pinned fsck.

Both formats that a kernel may meet are made: the one for new kernels alone, and the one that 2.6.39 mounts too.
Kernels of other versions are tried where $FSEXP_KERNELS names a folder with a kernel.json in each of its folders.
"""

import json
import os
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from bench import CORE, KERNELS, NEW, NFILES, OLD, Bench, experiment

from fsexp import digest, disk, plan, run, userland
from fsexp.image import formats
from fsexp.kernel import version
from fsexp.vm import guest
from fsexp.vm.guest import Guest

pytestmark = pytest.mark.vm

FSCK = {
    "ext4": ("e2fsck", "-f", "-n", "/dev/ram0"),
    "btrfs": ("btrfs", "check", "/dev/ram0"),
    "xfs": ("xfs_repair", "-n", "/dev/ram0"),
}
OLDEST = "2.6.39.4"
DISK_MIB = 320
OTHERS = Path(os.environ.get("FSEXP_KERNELS", "/nonexistent"))
# The userlands are loaded into the guest's memory: what no mkfs and no fsck needs is left out.
UNUSED = ("usr/lib/python3", "usr/share/", "usr/bin/p", "usr/lib/x86_64-linux-gnu/gconv", "var/")


@dataclass(frozen=True)
class Tried:
    """A filesystem that a guest made and used."""

    type: str
    options: tuple


@pytest.fixture(scope="session")
def programs(prepared, tmp_path_factory):
    """mkfs and fsck of all types, and a program that writes and checks files, as one userland."""
    folder = tmp_path_factory.mktemp("programs")
    lock = prepared.folder / "userland.lock"
    with tarfile.open(folder / "root.tar", "w") as merged:
        for number, packages in enumerate({one.packages for one in formats.FORMATS.values()}):
            spec = {"suite": "bookworm", "packages": list(packages)}
            userland.fetch(spec, prepared.folder / "cache", lock, folder / str(number))
            with tarfile.open(folder / str(number) / "root.tar") as whole:
                for member in whole:
                    if not member.name.startswith(UNUSED):
                        merged.addfile(member, whole.extractfile(member) if member.isreg() else None)
        source = Path(__file__).with_name("writer.c")
        subprocess.check_call(["musl-gcc", "-static", "-O2", "-Wall", "-Werror", "-o", folder / "writer", source])
        merged.add(folder / "writer", "usr/bin/writer")
    described = {"digest": digest.of_file(folder / "root.tar")}
    (folder / "userland.json").write_text(json.dumps(described))
    return folder / "userland.json"


def kernels():
    """What the tests go through: names of the bench's kernels, and folders of others."""
    yield OLD
    yield NEW
    if not OTHERS.is_dir():
        yield pytest.param(None, marks=pytest.mark.skip(reason="$FSEXP_KERNELS names no folder of other kernels"))
        return
    for path in sorted(OTHERS.glob("*/kernel.json")):
        yield pytest.param(path, id=path.parent.name)


def tried(kernel):
    """The common formats that the kernel has to mount: alone, and together with 2.6.39."""
    release = kernel.description["release"]
    numbers = version.parse(release)
    configuration = (kernel.folder / kernel.description["config"]["file"]).read_text()
    this = formats.Kernel(release, numbers, numbers, False)
    old = formats.Kernel(OLDEST, version.parse(OLDEST), version.parse(OLDEST), False)
    for type_ in formats.FORMATS:
        found = {}
        for kernels_ in ([this], [old, this]):
            made = formats.resolve(type_, "common", this, kernels_, "bookworm")
            try:
                formats.check_kernel(type_, made.features, release, numbers, configuration)
            except formats.Unsupported:
                assert "V4" in made.features  # the one feature that new kernels lose
                continue
            found[made.options] = Tried(type_, made.options)
        assert found
        yield from found.values()


@pytest.mark.parametrize("name", list(kernels()))
def test_common(name, prepared, programs):
    kernel = guest.read_kernel(name if isinstance(name, Path) else prepared.kernel(name))
    made = Guest(kernel, CORE)
    made.userland(programs)
    made.disks(disk.ram(DISK_MIB))
    wanted = []
    for number, one in enumerate(tried(kernel)):
        # mkfs.btrfs refuses an UUID that a filesystem made before has.
        command = formats.mkfs(one.type, one.options, "/dev/ram0")
        made.command([word.replace(formats.UUID, f"{formats.UUID[:-1]}{number}") for word in command])
        made.mount(one.type, "")
        made.command(["writer", "write", "/mnt"])
        made.umount()
        made.mount(one.type, "")
        made.command(["writer", "check", "/mnt"])
        made.umount()
        made.command(list(FSCK[one.type]))
        wanted += [one.type] * 2
    booting = run.described(prepared.config, made, disk.ram(DISK_MIB), seed=1)
    result, files = run.start(prepared.config, booting)
    shutil.rmtree(files)
    ran = [record for record in result["records"] if record["type"] == "command"]
    assert (result["outcome"], result["reason"]) == ("ok", ""), ran[-1:][0]["output"] if ran else result
    assert [record["filesystem"] for record in result["records"] if record["type"] == "mount"] == wanted
    assert [record["status"] for record in ran] == [0] * len(ran)
    assert [record["output"] for record in ran if record["argv"][0] == "writer"] == ["200 files\n"] * len(wanted)


def test_xfs_from_mkfs_to_a_run(prepared, tmp_path):
    """The image comes out the same twice, and both kernels run a workload on it."""
    bench = Bench.new(
        tmp_path / "xfs",
        {"small": experiment({"name": "create-unlink", "nfiles": NFILES}, KERNELS, ["xfs"])},
        filesystems={"xfs": {"type": "xfs", "disk_mib": DISK_MIB}},
    )
    shutil.copytree(prepared.results / "kernels", bench.results / "kernels", copy_function=os.link)
    shutil.copytree(prepared.results / "maker", bench.results / "maker", copy_function=os.link)
    bench.fsexp("userland")
    bench.make_ops()
    key = next(iter(plan.images(bench.config).values())).key
    bench.fsexp("image", key)
    bench.fsexp("image", key, "--output", bench.folder / "again" / "image.json")
    first, again = bench.image("xfs").parent, bench.folder / "again"
    for name in ("image.fsimg", "image.json"):
        assert (first / name).read_bytes() == (again / name).read_bytes()
    for one in plan.runs(bench.config):
        bench.fsexp("run", "--run", one.folder)
        assert bench.result(one)[0]["outcome"] == "ok"
