"""Images of fresh filesystems, made by the pinned mkfs in a maker VM under the virtual clock.

So the bytes are the same on every machine, the host needs no root, and its own mkfs does not matter.
"""

from __future__ import annotations

import shutil
import struct
import tempfile
import zlib
from pathlib import Path
from typing import Any

from fsexp import digest, plan, run, whole
from fsexp.config import Config
from fsexp.errors import MachineError, UserError
from fsexp.image import formats
from fsexp.vm import domain, guest
from fsexp.vm.guest import Guest

FORMAT = 1
MAGIC = b"FSEXPIMG"
END = 0xFFFFFFFFFFFFFFFF
BLOCK_BYTES = 4096
_HEADER = struct.Struct("<8sIIQ")
_EXTENT = struct.Struct("<QI")

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
    command = formats.mkfs(wanted.type, wanted.options, guest.DISK)
    made = Guest(maker, core)
    made.userland(userland)
    made.disk(wanted.disk_mib)
    made.command(command)
    made.export()
    settings = config.machine.model_dump()
    booting = run.Booting(
        maker,
        made.pack(),
        domain.command_line(settings, wanted.disk_mib * 1024),
        settings,
        domain.seed_uuid(0),
    )
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".export-", dir=output) as target:
        # Sparse: the guest writes the non-empty blocks only.
        target.truncate(wanted.disk_mib * 2**20 + 2**20)
        result, files = run.start(config, booting, export=Path(target.name).resolve())
        try:
            shutil.copyfile(files / "console.log", output / "console.log")
        finally:
            shutil.rmtree(files)
        _check(result, output)
        exported = next(record for record in result["records"] if record["type"] == "export")
        with Path(target.name).open("rb") as source:
            data = source.read(exported["bytes"])
    if len(data) != exported["bytes"] or zlib.crc32(data) != int(exported["digest_crc32"], 16):
        raise MachineError(f"the image {key} arrived damaged; the console is {output}/console.log")
    if not holds(data, wanted.type):
        said = "; ".join(record["output"].strip() for record in result["records"] if record["type"] == "command")
        raise Refused(f"{' '.join(command)} made no {wanted.type}{': ' + said if said else ''}")
    description = {
        "format": FORMAT,
        "digest": digest.of_bytes(data),
        "bytes": len(data),
        "blocks": exported["blocks"],
        "disk_mib": wanted.disk_mib,
        "filesystem": wanted.type,
        "features": wanted.features,
        "command": " ".join(command),
        "kernel": booting.kernel.description["digest"],
        "userland": packages["digest"],
    }
    whole.write(output / "image.fsimg", data)
    whole.write_json(output / "image.json", description)
    return description


def holds(image: bytes, type_: str) -> bool:
    """Whether an image has a filesystem of that type on it; of a type unknown here, whether it has anything."""
    at, signature = _SIGNATURES.get(type_, (0, b""))
    wanted, offset = divmod(at, BLOCK_BYTES)
    place = _HEADER.size
    while place + _EXTENT.size <= len(image):
        first, count = _EXTENT.unpack_from(image, place)
        place += _EXTENT.size
        if first == END:
            return False
        if not signature:
            return True
        if first <= wanted < first + count:
            start = place + (wanted - first) * BLOCK_BYTES + offset
            return image[start : start + len(signature)] == signature
        place += count * BLOCK_BYTES
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
