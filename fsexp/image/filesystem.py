"""Images of fresh filesystems, made by the pinned mkfs in a maker VM under the virtual clock.

So the bytes are the same on every machine, the host needs no root, and its own mkfs does not matter.
"""

from __future__ import annotations

import shutil
import tempfile
import zlib
from pathlib import Path
from typing import Any

from fsexp import digest, disk, plan, run, whole
from fsexp.config import Config
from fsexp.errors import MachineError, UserError
from fsexp.image import extents, formats
from fsexp.vm import guest
from fsexp.vm.guest import Guest

FORMAT = 1

# Where on its disk, in bytes, each filesystem has the bytes that it is known by (the magic file of libblkid).
_SIGNATURES = {
    "ext4": (1024 + 56, b"\x53\xef"),
    "btrfs": (64 * 1024 + 64, b"_BHRfS_M"),
    "xfs": (0, b"XFSB"),
}


class Refused(UserError):
    """mkfs did not make the filesystem that the configuration asks for: a finding, and no failure of the machine."""


def make(config: Config, key: str, kernel: Path, userland: Path, core: Path, output: Path) -> dict[str, Any]:
    """Make the image `key` (plan.image_key) into the folder `output`: image.fsimg, image.json, console.log.

    Raises Refused when mkfs makes no such filesystem, UserError when the key is not the study's or an input is
    missing, MachineError when the maker VM fails.
    """
    wanted = plan.image(config, key)
    maker = guest.read_kernel(kernel)
    packages = guest.read_userland(userland)
    for what, description in (("kernel", maker.description), ("userland", packages)):
        if "unavailable" in description:
            raise UserError(f"the maker VM's {what} can't be had: {description['unavailable']}")
    # Each image has room for all of its device's blocks, with what stands before each thousand of them.
    room_bytes = [size_mib * disk.MIB + disk.MIB for size_mib in wanted.disks_mib]
    offsets_bytes = [sum(room_bytes[:number]) for number in range(len(room_bytes))]
    made = Guest(maker, core)
    made.userland(userland)
    made.disks(_layout(wanted.disks_mib))
    command = formats.mkfs(wanted.type, wanted.options, *made.nodes)
    made.command(command)
    made.export(offsets_bytes)
    # The maker needs no memory for its disks besides its own: of them only what mkfs writes takes any.
    booting = run.described(config, made, disk.Layout(()), seed=0)
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".export-", dir=output) as target:
        # Sparse: the guest writes the non-empty blocks only.
        target.truncate(sum(room_bytes))
        result, files = run.start(config, booting, export=Path(target.name).resolve())
        try:
            shutil.copyfile(files / "console.log", output / "console.log")
        finally:
            shutil.rmtree(files)
        _check(result, output)
        arrived = _arrived(key, result, Path(target.name), offsets_bytes, output)
    images = [data for _, data in arrived]
    if not holds(images[0], wanted.type):
        said = "; ".join(record["output"].strip() for record in result["records"] if record["type"] == "command")
        raise Refused(f"{' '.join(command)} made no {wanted.type}{': ' + said if said else ''}")
    names = ["image.fsimg", *(f"image-{number}.fsimg" for number in range(1, len(images)))]
    devices = [
        {"file": name, "digest": digest.of_bytes(data), "bytes": len(data), "blocks": record["blocks"], "mib": size_mib}
        for name, (record, data), size_mib in zip(names, arrived, wanted.disks_mib, strict=True)
    ]
    description = {
        "format": FORMAT,
        "digest": devices[0]["digest"] if len(devices) == 1 else digest.of_value([one["digest"] for one in devices]),
        "bytes": sum(one["bytes"] for one in devices),
        "blocks": sum(one["blocks"] for one in devices),
        "disk_mib": wanted.disk_mib,
        "filesystem": wanted.type,
        "features": wanted.features,
        "command": " ".join(command),
        "kernel": booting.kernel.description["digest"],
        "userland": packages["digest"],
    }
    if len(devices) > 1:
        description["devices"] = devices
    for name, data in zip(names, images, strict=True):
        whole.write(output / name, data)
    whole.write_json(output / "image.json", description)
    return description


def _layout(disks_mib: tuple[int, ...]) -> disk.Layout:
    """The maker's disks: brd, whose disks are all of one size, for one; null_blk, whose are each of its own, for more.

    mkfs.btrfs writes each device's size into the filesystem, and its --byte-count is one for all.
    """
    if len(disks_mib) == 1:
        return disk.ram(disks_mib[0])
    return disk.Layout(tuple(disk.Device("ssd", size_mib, 1, 32) for size_mib in disks_mib))


def _arrived(
    key: str, result: dict[str, Any], target: Path, offsets_bytes: list[int], output: Path
) -> list[tuple[dict[str, Any], bytes]]:
    """The images that the guest wrote, each as its record says."""
    exported = [record for record in result["records"] if record["type"] == "export"]
    arrived = []
    with target.open("rb") as source:
        for record, offset_bytes in zip(exported, offsets_bytes, strict=True):
            source.seek(offset_bytes)
            data = source.read(record["bytes"])
            if len(data) != record["bytes"] or zlib.crc32(data) != int(record["digest_crc32"], 16):
                raise MachineError(f"the image {key} arrived damaged; the console is {output}/console.log")
            arrived.append((record, data))
    return arrived


def holds(image: bytes, type_: str) -> bool:
    """Whether an image has a filesystem of that type on it; of a type unknown here, whether it has anything."""
    at, signature = _SIGNATURES.get(type_, (0, b""))
    wanted, offset = divmod(at, extents.BLOCK_BYTES)
    for first, blocks in extents.read(image):
        if not signature:
            return True
        if first <= wanted < first + len(blocks) // extents.BLOCK_BYTES:
            start = (wanted - first) * extents.BLOCK_BYTES + offset
            return blocks[start : start + len(signature)] == signature
    return False


def _check(result: dict[str, Any], output: Path) -> None:
    for ran in (record for record in result["records"] if record["type"] == "command"):
        # From 128 on a signal ended it, as when the memory is used up: that is no word about its options.
        if 0 < ran["status"] < 128 and result["outcome"] == "workload-failed":
            raise Refused(f"{' '.join(ran['argv'])} failed with status {ran['status']}: {ran['output'].strip()}")
    if result["outcome"] != "ok":
        raise MachineError(
            f"the maker VM ended {result['outcome']}: {result['reason']}; the console is {output}/console.log"
        )
