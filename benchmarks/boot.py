"""How long a guest boots, and what each measure that shortens the boot saves.

Per kernel: seconds of the host from QEMU's start to the core's first record, and the guest's own clock in that record.
Then the same with one measure taken away at a time. Bare QEMU, without libvirt; the guest is ended after that record.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import guests

from fsexp import deb, plan, run

_LOOK_S = 0.01
_GIVEN_UP_S = 120.0
# Without these there is no console or nothing to measure; brd's are no matter of the boot.
_KEPT = re.compile(r"console=|rdinit=|brd\.")
_BZIMAGE = re.compile(r"boot/vmlinuz-[^/]+|usr/lib/modules/[^/]+/vmlinuz")


@dataclass(frozen=True)
class Boot:
    """What a variant boots."""

    booting: run.Booting
    command_line: str
    kernel: Path


def main() -> int:
    """Boot every variant of every kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3, help="boots of each variant, of which the median is shown")
    parser.add_argument("--kernel", action="append", metavar="NAME", help="only this one (default: all)")
    options = parser.parse_args()
    config = guests.study()
    firsts: dict[str, plan.Run] = {}
    for one in plan.runs(config):
        firsts.setdefault(one.kernel, one)
    for name, one in firsts.items():
        if options.kernel and name not in options.kernel:
            continue
        booting = run.prepare(config, one, guests.inputs(config, one))
        with tempfile.TemporaryDirectory(prefix="fsexp-benchmark-") as scratch:
            folder = Path(scratch)
            whole = Boot(booting, booting.command_line, booting.kernel.image)
            variants = _variants(whole, Path(config.cache) / "downloads", folder)
            # A round of all variants, then the next: load that comes and goes falls on all of them.
            taken: dict[str, list[tuple[float, int] | None]] = {}
            for _ in range(options.repeat):
                for what, change in variants.items():
                    taken.setdefault(what, []).append(_boot(change(whole), folder))
        guests.show(_title(booting), ("measures", "host s", "more", "guest s", "more"), _rows(taken))
    return 0


def _title(booting: run.Booting) -> str:
    image = booting.kernel.description["image"]
    return f"{booting.kernel.description['release']} ({image['format']}, {image['bytes'] / 2**20:.0f} MiB)"


def _variants(whole: Boot, downloads: Path, folder: Path) -> dict[str, Callable[[Boot], Boot]]:
    """What is taken away -> how."""
    variants: dict[str, Callable[[Boot], Boot]] = {"all": lambda boot: boot}
    for word in whole.command_line.split():
        if not _KEPT.match(word):
            variants[f"without {word}"] = lambda boot, word=word: replace(
                boot, command_line=" ".join(other for other in boot.command_line.split() if other != word)
            )
    if whole.booting.kernel.description["image"]["format"] == "elf":
        image = folder / "bzImage"
        image.write_bytes(_bzimage(whole.booting.kernel.description, downloads))
        variants["bzImage instead of vmlinux"] = lambda boot: replace(boot, kernel=image)
    packed = replace(whole.booting, initramfs=gzip.compress(whole.booting.initramfs, 6, mtime=0))
    variants["initramfs compressed (gzip)"] = lambda boot: replace(boot, booting=packed)
    return variants


def _bzimage(description: dict, downloads: Path) -> bytes:
    """The kernel's image as the package has it."""
    for package in description["source"]["packages"]:
        version = package["version"].split(":", 1)[-1]
        for path in downloads.glob(f"{package['package']}_{version}_*.deb"):
            with deb.contents(path) as archive:
                for member in archive.getmembers():
                    if member.isfile() and _BZIMAGE.fullmatch(deb.installed_path(member.name)):
                        content = archive.extractfile(member)
                        assert content is not None
                        return content.read()
    raise SystemExit(f"the kernel's packages are not in {downloads}; `fsexp kernel` fetches them")


def _boot(boot: Boot, folder: Path) -> tuple[float, int] | None:
    """Host seconds to the first record and the guest's nanoseconds in it; None when none came."""
    argv, records = guests.qemu(boot.booting, folder, boot.command_line, boot.kernel)
    began = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while process.poll() is None and time.monotonic() - began < _GIVEN_UP_S:
            line = records.read_bytes() if records.exists() else b""
            if b"\n" in line:
                took_s = time.monotonic() - began
                return took_s, json.loads(line.splitlines()[0])["monotonic_ns"]
            time.sleep(_LOOK_S)
        return None
    finally:
        process.kill()
        process.communicate()


def _rows(taken: dict[str, list[tuple[float, int] | None]]) -> list[tuple]:
    base: tuple[float, float] | None = None
    rows = []
    for what, boots in taken.items():
        if None in boots:
            rows.append((what, "no record", "", "", ""))
            continue
        host_s = guests.median(boot[0] for boot in boots if boot)
        guest_s = guests.median(boot[1] / 1e9 for boot in boots if boot)
        if base is None:
            base = host_s, guest_s
            rows.append((what, f"{host_s:.2f}", "", f"{guest_s:.3f}", ""))
        else:
            rows.append(
                (what, f"{host_s:.2f}", f"{host_s - base[0]:+.2f}", f"{guest_s:.3f}", f"{guest_s - base[1]:+.3f}")
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
