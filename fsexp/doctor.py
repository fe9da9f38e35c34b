"""What this machine can do for a study, and the command that mends what is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

# Program or file -> Debian's package: what a study needs once ./run, whose list is longer, has built its parts.
_NEEDED = {
    "qemu-system-x86_64": "qemu-system-x86",
    "musl-gcc": "musl-tools",
    "make": "make",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
    "patch": "patch",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "/usr/include/libelf.h": "libelf-dev",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}
_DRIVER = "libvirt/connection-driver/libvirt_driver_qemu.so"


def report(say: Callable[[str], None]) -> int:
    """Say what was found, a line each. Returns 0 where a study can be run, else 1."""
    missing = []
    for name, package in _NEEDED.items():
        found = name if name.startswith("/") and Path(name).exists() else shutil.which(name)
        say(f"{'found  ' if found else 'MISSING'} {name}")
        if not found:
            missing.append(package)
    driver = next(Path("/usr").glob(f"lib*/**/{_DRIVER}"), None)
    say(f"{'found  ' if driver else 'MISSING'} libvirt's QEMU driver")
    if driver is None:
        missing.append("libvirt-daemon-driver-qemu")
    core = Path(__file__).resolve().parents[1] / "vmimages" / "core" / "build" / "core"
    say(f"{'found  ' if core.exists() else 'MISSING'} the workload core")
    free_bytes = shutil.disk_usage(".").free
    say(f"{free_bytes / 2**30:.1f} GiB free here")
    if "qemu-system-x86" not in missing:
        from fsexp.vm import domain

        say(domain.emulator()["version"])
    if missing:
        say(f"to install: apt-get install {' '.join(missing)}")
    if not core.exists():
        say("to build the core: make -C vmimages/core")
    return 1 if missing or not core.exists() else 0
