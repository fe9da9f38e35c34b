"""Images of fresh filesystems, made by the pinned mkfs in a maker VM under the virtual clock.

So the bytes are the same on every machine, the host needs no root, and its own mkfs does not matter.
"""

from __future__ import annotations

import json
import shutil
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


def make(config: Config, key: str, kernel: Path, userland: Path, core: Path, output: Path) -> dict[str, Any]:
    """Make the image `key` (plan.image_key) into the folder `output`: image.fsimg, image.json, console.log.

    Raises UserError when the key is not the study's or an input is missing, MachineError when the maker VM fails.
    """
    wanted = plan.image(config, key)
    packages = json.loads(userland.read_text(encoding="utf-8"))
    for what, description in (("kernel", guest.read_kernel(kernel).description), ("userland", packages)):
        if "unavailable" in description:
            raise UserError(f"the maker VM's {what} can't be had: {description['unavailable']}")
    command = formats.mkfs(wanted.type, wanted.options, guest.DISK)
    made = Guest(guest.read_kernel(kernel), core)
    made.userland(userland.with_name("root.tar"))
    made.disk(wanted.disk_mib)
    made.command(command)
    made.export()
    settings = config.machine.model_dump()
    booting = run.Booting(
        guest.read_kernel(kernel),
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
    (output / "image.fsimg").write_bytes(data)
    whole.write_json(output / "image.json", description)
    return description


def _check(result: dict[str, Any], output: Path) -> None:
    for ran in (record for record in result["records"] if record["type"] == "command"):
        if ran["status"] != 0:
            raise UserError(f"{' '.join(ran['argv'])} failed with status {ran['status']}: {ran['output'].strip()}")
    if result["outcome"] != "ok":
        raise MachineError(
            f"the maker VM ended {result['outcome']}: {result['reason']}; the console is {output}/console.log"
        )
