"""Disks of the virtual clock: models that the guest's own kernel makes, with a latency in guest time.

A table says for each model which driver makes it, on which kernels, how fast it is and what it does not model
(docs/disks.md). `layout` turns a disk of the configuration into devices, `setup` into what a guest is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fsexp.errors import UserError
from fsexp.kernel.version import Version, show

if TYPE_CHECKING:
    from fsexp import config

MIB = 2**20

# The superblock of bcache and the room before the data behind it: the backing device is larger by this, so that the
# device which bcache shows holds the same filesystem as a disk without it.
BCACHE_MIB = 1
BCACHE = "/dev/bcache0"
_BCACHE_FIRST: Version = (3, 10)  # commit cafe56359144, "bcache: A block layer cache"


class Unsupported(UserError):
    """A kernel can't make a disk of this model."""


@dataclass(frozen=True)
class Driver:
    """What makes a model's devices, from which kernel on, and what that rests on."""

    name: str
    first: Version
    source: str


@dataclass(frozen=True)
class Model:
    """One model of a disk: how it is made, and what it does.

    drivers: the first that a kernel has makes it. latency_us, queue_depth: of a device that says none; None where the
    driver answers at once. request_kib: the most that one request moves: 128 pages, which null_blk takes anywhere in
    memory. mib_per_s: None without a limit of its own.
    memory: whether the guest gets the memory that it takes besides machine.memory_mib.
    """

    drivers: tuple[Driver, ...]
    latency_us: int | None = None
    queue_depth: int | None = None
    request_kib: int | None = None
    mib_per_s: int | None = None
    memory: bool = False


MODELS = {
    "ram": Model((Driver("brd", (2, 6, 25), "commit 9db5579be4bb"),)),
    # 7200 turns a minute: half a turn of 4.2 ms and a short seek.
    "hdd": Model(
        (
            # Not scsi_debug on new kernels: since 6.11 (atomic writes) it copies sector by sector, each time from the
            # beginning of the request's list of pages, 20 ms of the processor for 1 MiB on 7.3.
            Driver("null_blk", (5, 11), "commit ea17fd354ca8, max_sectors"),
            Driver("scsi_debug", (2, 6, 32), "older ones were not tried"),
        ),
        latency_us=8000,
        queue_depth=1,
        request_kib=512,
        memory=True,
    ),
    "ssd": Model(
        (Driver("null_blk", (4, 14), "commit 5bcd0e0c79b5, memory_backed"),),
        latency_us=100,
        queue_depth=32,
        request_kib=512,
        mib_per_s=500,
        memory=True,
    ),
}

# scsi_debug's delay in nanoseconds, and OPT_N_WCE besides: commit cbf67842c3d9. Before, it is in ticks.
_NDELAY_FIRST: Version = (3, 17)
_NO_WRITE_CACHE = 0x1000
# Before, a request of null_blk has 127 KiB at most.
_MAX_SECTORS_FIRST: Version = (5, 11)


@dataclass(frozen=True)
class Device:
    """One block device, its figures filled in."""

    model: str
    mib: int
    latency_us: int | None
    queue_depth: int | None

    @property
    def mib_per_s(self) -> float | None:
        """What one reader gets of it by large requests, one after the other; None where nothing bounds it."""
        model = MODELS[self.model]
        if self.latency_us is None:
            return None
        one_by_one = model.request_kib / 1024 / (self.latency_us / 1e6)
        return one_by_one if model.mib_per_s is None else min(one_by_one, model.mib_per_s)


@dataclass(frozen=True)
class Layout:
    """The devices of a guest, in order; with bcache (its mode) the backing one and then the cache."""

    devices: tuple[Device, ...]
    bcache: str | None = None

    @property
    def memory_mib(self) -> int:
        """Memory that the guest needs for them besides its own."""
        return sum(device.mib for device in self.devices if MODELS[device.model].memory)


@dataclass(frozen=True)
class Facts:
    """What must be known of a kernel to make disks in it: its ticks a second are None where nothing tells them."""

    release: str
    version: Version
    hz: int | None


@dataclass
class Setup:
    """What a guest is told.

    nodes: the devices, in the layout's order. modules: name -> parameters, in order. make: directives that make the
    devices; slow: those that give them their latency where the images are written first; join: those that make one
    device of several, after that, by join_modules. arguments: of the kernel, for a driver that is built in. mounted:
    the device that is mounted, and the mount options that it needs.
    """

    nodes: list[str] = field(default_factory=list)
    modules: dict[str, str] = field(default_factory=dict)
    make: list[tuple[str, ...]] = field(default_factory=list)
    slow: list[tuple[str, ...]] = field(default_factory=list)
    join_modules: tuple[str, ...] = ()
    join: list[tuple[str, ...]] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    mounted: str = ""
    options: str = ""


def ram(mib: int) -> Layout:
    """One RAM disk."""
    return Layout((Device("ram", mib, None, None),))


def layout(disk: config.Disk, disk_mib: int) -> Layout:
    """The devices of a disk of the configuration; `disk_mib` is the filesystem's, for those that say no size."""
    devices = [_device(part, disk_mib) for part in disk.parts]
    if disk.bcache:
        backing = devices[0]
        devices[0] = Device(backing.model, backing.mib + BCACHE_MIB, backing.latency_us, backing.queue_depth)
    return Layout(tuple(devices), disk.bcache)


def _device(part: config.Device, disk_mib: int) -> Device:
    model = MODELS[part.model]
    return Device(
        part.model, part.mib or disk_mib, part.latency_us or model.latency_us, part.queue_depth or model.queue_depth
    )


# More than anybody needs, and as many letters as a disk's name has.
DEVICES_MAX = 16


def problem(disk: config.Disk) -> str | None:
    """Why no kernel can make the disk, or None."""
    devices = len(disk.parts)
    return f"it has {devices} devices, and {DEVICES_MAX} is the most" if devices > DEVICES_MAX else None


def arguments(wanted: Layout) -> list[str]:
    """The most that a kernel's command line has to say of them."""
    eras = [Facts("", driver.first, 1000) for model in MODELS.values() for driver in model.drivers]
    found: list[str] = []
    for kernel in eras:
        try:
            found = max(found, setup(wanted, kernel).arguments, key=lambda words: len(" ".join(words)))
        except Unsupported:
            continue
    return found


def driver(model: str, kernel: Facts) -> str:
    """What makes the devices of that model in that kernel. Raises Unsupported where nothing does."""
    drivers = MODELS[model].drivers
    for one in drivers:
        if kernel.version >= one.first:
            return one.name
    oldest = drivers[-1]
    raise Unsupported(
        f"the disk model {model} is made by {oldest.name}, which can since Linux {show(oldest.first)} "
        f"({oldest.source}), and this is {kernel.release}"
    )


def setup(wanted: Layout, kernel: Facts) -> Setup:
    """What to tell a guest of that kernel. Raises Unsupported where the kernel can't make the devices."""
    told = Setup()
    drivers = [driver(device.model, kernel) for device in wanted.devices]
    told.nodes = [_NODES[name](drivers[:number].count(name)) for number, name in enumerate(drivers)]
    for name, make in _MAKERS.items():
        chosen = [number for number, other in enumerate(drivers) if other == name]
        if chosen:
            make([wanted.devices[number] for number in chosen], [told.nodes[number] for number in chosen], kernel, told)
    told.mounted = told.nodes[0]
    if wanted.bcache:
        _bcache(wanted, kernel, told)
    elif len(told.nodes) > 1:
        # So the kernel needs no scan for the others.
        told.options = ",".join(f"device={node}" for node in told.nodes)
    return told


_NODES: dict[str, Callable[[int], str]] = {
    "brd": lambda number: f"/dev/ram{number}",
    "scsi_debug": lambda number: f"/dev/sd{chr(ord('a') + number)}",
    "null_blk": lambda number: f"/dev/nullb{number}",
}


def _brd(devices: Sequence[Device], nodes: Sequence[str], _: Facts, told: Setup) -> None:
    kib = max(device.mib for device in devices) * 1024  # one size for all
    told.modules["brd"] = f"rd_nr={len(devices)} rd_size={kib} max_part=0"
    told.arguments += [f"brd.rd_nr={len(devices)}", f"brd.rd_size={kib}"]
    told.make += [_awaited(device, node) for device, node in zip(devices, nodes, strict=True)]


def _awaited(device: Device, node: str) -> tuple[str, ...]:
    return ("disk", node, str(device.mib * MIB))


def _rotational(device: Device, node: str) -> tuple[str, ...]:
    """What the block layer believes: scsi_debug and null_blk say that they do not rotate, and btrfs goes by it."""
    return ("write", f"{_queue(node)}/rotational", str(int(device.model == "hdd")))


def _queue(node: str) -> str:
    return f"/sys/block/{node.removeprefix('/dev/')}/queue"


def _scsi_debug(devices: Sequence[Device], nodes: Sequence[str], kernel: Facts, told: Setup) -> None:
    """It answers at once until the images are written, and has no write cache.

    With one, kernels from 4.17 on hold up each SYNCHRONIZE CACHE after a write for 50 ms (80c49563e250 and
    4f2c8bf6bdff), and those before 3.17, which can't be told to have none, for nothing.
    """
    if len(devices) > 1:
        raise Unsupported(
            f"{len(devices)} devices of model hdd need Linux {show(MODELS['hdd'].drivers[0].first)}: before it they "
            f"are made by scsi_debug, whose disks are one memory, and this is {kernel.release}"
        )
    device, node = devices[0], nodes[0]
    if device.queue_depth > 255:
        raise Unsupported(
            f"a queue_depth of {device.queue_depth} is more than scsi_debug's 255, and this is {kernel.release}"
        )
    delay, value = _delay(device.latency_us, kernel)
    values = {
        "dev_size_mb": device.mib,
        "add_host": 1,
        "max_queue": device.queue_depth,
        "delay": 0,
        "opts": _NO_WRITE_CACHE if kernel.version >= _NDELAY_FIRST else 0,
    }
    told.modules["scsi_debug"] = " ".join(f"{name}={number}" for name, number in values.items())
    told.modules["sd_mod"] = ""
    told.arguments += [f"scsi_debug.{name}={number}" for name, number in values.items()]
    told.make += [
        _awaited(device, node),
        _rotational(device, node),
        # Kernels differ in the default; this all allow.
        ("write", f"{_queue(node)}/max_sectors_kb", str(MODELS["hdd"].request_kib)),
    ]
    told.slow.append(("write", f"/sys/bus/pseudo/drivers/scsi_debug/{delay}", str(value)))


def _delay(latency_us: int, kernel: Facts) -> tuple[str, int]:
    """Which of scsi_debug's delays, and its value."""
    if kernel.version >= _NDELAY_FIRST:
        if latency_us >= 1_000_000:
            raise Unsupported(f"a latency of {latency_us} us is more than scsi_debug's second in {kernel.release}")
        return "ndelay", latency_us * 1000
    before = f"before Linux {show(_NDELAY_FIRST)} scsi_debug's delay is in ticks"
    if kernel.hz is None:
        raise Unsupported(f"{before}, and nothing tells how many a second {kernel.release} has (no CONFIG_HZ)")
    ticks, rest = divmod(latency_us * kernel.hz, 1_000_000)
    if rest or not ticks:
        raise Unsupported(
            f"a latency of {latency_us} us is no whole number of ticks, and {before} "
            f"({1_000_000 // kernel.hz} us in {kernel.release})"
        )
    return "delay", ticks


def _null_blk(devices: Sequence[Device], nodes: Sequence[str], kernel: Facts, told: Setup) -> None:
    """It has no write cache unless told to, and its latency from the start: it can't be changed later."""
    told.modules["null_blk"] = "nr_devices=0"
    told.make.append(("filesystem", "configfs", "/sys/kernel/config"))
    for device, node in zip(devices, nodes, strict=True):
        model = MODELS[device.model]
        # Newer kernels name the disk by this folder, older ones by their own count, which gives the same.
        folder = f"/sys/kernel/config/nullb/{node.removeprefix('/dev/')}"
        values = {
            "size": device.mib,
            "memory_backed": 1,
            "irqmode": 2,  # a timer answers
            "completion_nsec": device.latency_us * 1000,
            "hw_queue_depth": device.queue_depth,
            "submit_queues": 1,
        }
        if model.mib_per_s:
            values["mbps"] = model.mib_per_s
        if kernel.version >= _MAX_SECTORS_FIRST:
            values["max_sectors"] = model.request_kib * 2
        values["power"] = 1  # makes the disk: the last
        told.make.append(("mkdir", folder))
        told.make += [("write", f"{folder}/{name}", str(number)) for name, number in values.items()]
        told.make += [_awaited(device, node), _rotational(device, node)]


_MAKERS: dict[str, Callable[[Sequence[Device], Sequence[str], Facts, Setup], None]] = {
    "brd": _brd,
    "scsi_debug": _scsi_debug,
    "null_blk": _null_blk,
}


def _bcache(wanted: Layout, kernel: Facts, told: Setup) -> None:
    """The images have the superblocks (fsexp.image.bcache): they say the mode, and that the two belong together."""
    if kernel.version < _BCACHE_FIRST:
        raise Unsupported(f"bcache is there since Linux {show(_BCACHE_FIRST)}, and this is {kernel.release}")
    told.join_modules = ("bcache",)
    # The cache first: its set is there when the backing device looks for it.
    told.join += [("write", "/sys/fs/bcache/register", node) for node in reversed(told.nodes)]
    told.join += [
        ("wait", "/sys/block/bcache0/bcache/cache"),
        ("disk", BCACHE, str((wanted.devices[0].mib - BCACHE_MIB) * MIB)),
    ]
    told.mounted = BCACHE


def hz(configuration: str | None) -> int | None:
    """The ticks a second of a kernel, by the text of its .config."""
    found = re.search(r"^CONFIG_HZ=(\d+)$", configuration or "", re.MULTILINE)
    return int(found[1]) if found else None
