"""A guest's description: the machine it runs on, and the libvirt domain that says so."""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from fsexp import digest
from fsexp.errors import UserError

TEMPLATES = Path(__file__).resolve().parents[2] / "vmimages"
EMULATOR = "qemu-system-x86_64"

# Files of QEMU that run inside the guest before the kernel does: with other ones the digits differ
# (QEMU 10.0 instead of 7.2, same machine type: within 0.08 %).
_FIRMWARE = ("bios-256k.bin", "linuxboot_dma.bin", "pvh.bin")
_FIRMWARE_FOLDERS = ("/usr/share/seabios", "/usr/share/qemu")

# Argument -> why it is there. Kernels that do not know one pass it over. The seconds are of the host, for Debian's
# 6.1 on the machine that docs/clocks.md describes.
_ARGUMENTS = {
    "console=ttyS0": "the kernel's messages go to the first serial port",
    "rdinit=/init": "the core",
    "nokaslr": "addresses must not depend on the boot",
    "panic=-1": "a panic restarts at once, which ends QEMU (-no-reboot), instead of waiting for the limit",
    "nolapic_timer": "its calibration spins on PAUSE, which leaves TCG's translated code each time: 3.3 s",
    "tsc_early_khz=1000000": "the virtual TSC counts nanoseconds exactly; measured, it came out as 999.999 MHz",
    "cryptomgr.notests=1": "self-tests of algorithms, 0.8 s of guest time",
    "scsi_debug.add_host=0": "where it is built in, it would make a disk at every boot",
    "null_blk.nr_devices=0": "where it is built in, it would make a disk at every boot",
}

_SEEDS = uuid.UUID("8f1d3f0e-5c51-4b60-9d20-7a4f6c1f5e00")


@cache
def emulator() -> dict[str, Any]:
    """The QEMU of this machine: its path, version and the digests of its firmware. Raises UserError without one."""
    path = shutil.which(EMULATOR)
    if path is None:
        raise UserError(f"{EMULATOR} is not installed (Debian's package qemu-system-x86)")
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if answer.returncode != 0 or not answer.stdout:
        raise UserError(f"{path} --version failed: {answer.stderr.strip() or answer.returncode}")
    firmware = {}
    for name in _FIRMWARE:
        for folder in _FIRMWARE_FOLDERS:
            file = Path(folder, name)
            if file.exists():
                firmware[name] = digest.of_file(file)
                break
    return {"path": path, "version": answer.stdout.splitlines()[0], "firmware": firmware}


def check(settings: dict[str, Any]) -> None:
    """Raises UserError where this machine's QEMU has no such machine type or CPU model."""
    for key, what, row in (("type", "machine", r"^(\S+) +"), ("cpu", "cpu", r"^x86 (\S+)")):
        # -cpu and -machine list what there is, a line each, under a heading.
        answer = subprocess.run([emulator()["path"], f"-{what}", "help"], capture_output=True, text=True, check=False)
        known = re.findall(row, answer.stdout, re.MULTILINE)
        if known and settings[key] not in known:
            close = difflib.get_close_matches(settings[key], known, n=4) or known[:4]
            raise UserError(
                f"machine.{key}: {emulator()['version']} has no {settings[key]}; it has {', '.join(close)} and others "
                f"(`{EMULATOR} -{what} help` lists them)"
            )


def machine(settings: dict[str, Any]) -> dict[str, Any]:
    """The machine description that is part of a run's identity: `settings` (config.Machine) and the emulator."""
    found = emulator()
    return {**settings, "qemu": found["version"], "firmware": found["firmware"], "vcpus": 1, "icount_sleep": "off"}


def seed_uuid(seed: int) -> str:
    """The SMBIOS UUID for a seed: the one input that makes one sample of memory layout differ from the next."""
    return str(uuid.uuid5(_SEEDS, str(seed)))


def command_line(settings: dict[str, Any], disks: Iterable[str]) -> str:
    """The kernel's command line.

    disks: arguments for kernels that have a disk's driver built in (disk.Setup); as a module it gets the same by its
    parameters.
    """
    extra = settings["kernel_arguments"]
    return " ".join([*_ARGUMENTS, *disks, *extra.split()])


def render(**values: Any) -> str:
    """The domain's XML (vmimages/domain.xml.j2)."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.get_template("domain.xml.j2").render({"emulator": emulator()["path"], **values})


def fingerprint(settings: dict[str, Any], uuid_: str = "", arguments: str = "") -> str:
    """A digest of all that a guest sees of its machine: description, domain and kernel command line.

    The domain's paths play no part: they differ from run to run and are not to be seen from inside.
    """
    described = machine(settings)
    places = dict.fromkeys(("name", "emulator", "kernel", "initramfs", "console", "records"), "")
    xml = render(**places, export=None, uuid=uuid_, machine=described, command_line=arguments)
    return digest.of_value([described, xml, arguments, list(_ARGUMENTS)])
