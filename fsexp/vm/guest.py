"""What a guest is told to do: the initramfs it boots from, with the core as its first process.

The set-up is a list of directives that the core carries out in order (vmimages/core/README.md lists them).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest
from fsexp.errors import UserError
from fsexp.image.formats import FORMATS
from fsexp.image.initramfs import Initramfs
from fsexp.kernel import modules as kernels

SETUP_VERSION = 1
DISK = "/dev/ram0"
MOUNTPOINT = "/mnt"

# What every guest's disk needs, whatever is on it.
_DISK_MODULES = ("brd",)
# The one virtio device, the maker's way out, bound after the last command.
_EXPORT_MODULES = ("virtio_pci", "virtio_blk")


@dataclass(frozen=True)
class Kernel:
    """A kernel's folder as `fsexp kernel` left it."""

    folder: Path
    description: dict[str, Any]

    @property
    def image(self) -> Path:
        """The file that QEMU boots."""
        return self.folder / self.description["image"]["file"]


def read_kernel(path: Path) -> Kernel:
    """The kernel that `path`, its kernel.json, describes. Raises UserError where there is none."""
    return Kernel(path.parent, _json(path, "kernel"))


def _json(path: Path, what: str) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no {what} at {path}; `fsexp {what}` makes it") from None
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}); remove it and make it again with `fsexp {what}`") from None


class Guest:
    """One guest being described: its kernel, its directives and the files they name."""

    def __init__(self, kernel: Kernel, core: Path) -> None:
        # The digest stands for the image in a run's identity: other bytes must not bear it.
        if digest.of_file(kernel.image) != kernel.description["image"]["sha256"]:
            raise UserError(
                f"{kernel.image} is not what its kernel.json says; remove {kernel.folder} and fetch it again"
            )
        self._kernel = kernel
        self._archive = Initramfs()
        self._loaded: list[str] = []
        self._directives: list[tuple[str, ...]] = [("fsexp-setup", str(SETUP_VERSION))]
        try:
            self._archive.file("init", core.read_bytes(), executable=True)
        except FileNotFoundError:
            raise UserError(f"there is no core at {core}; `make -C vmimages/core` builds it") from None
        self._archive.link("fsexp/modprobe", "/init")
        for folder in ("dev", "proc", "sys", "tmp", MOUNTPOINT):
            self._archive.folder(folder)
        # The kernel opens it for its first process before anything can make it.
        self._archive.character_device("dev/console", 5, 1)

    def disk(self, disk_mib: int) -> None:
        """A RAM disk by the guest's own driver."""
        size = f"rd_nr=1 rd_size={disk_mib * 1024} max_part=0"
        self._modules(_DISK_MODULES, {"brd": size})
        self._say("disk", DISK, str(disk_mib * 2**20))

    def image(self, path: Path) -> None:
        """The content of the disk."""
        self._archive.file("fsexp/images/0", path.read_bytes())
        self._say("image", DISK, "/fsexp/images/0")

    def mount(self, type_: str, options: str) -> None:
        """Mount the disk, and prove it."""
        self._modules(FORMATS[type_].modules)
        self._say("mount", DISK, type_, MOUNTPOINT, options, f"{FORMATS[type_].magic:#x}")

    def ops(self, path: Path) -> None:
        """Replay a stream of operations in the mounted filesystem."""
        self._archive.file("fsexp/ops", path.read_bytes())
        self._say("ops", "/fsexp/ops", MOUNTPOINT)

    def umount(self) -> None:
        """Unmount the filesystem."""
        self._say("umount", MOUNTPOINT)

    def userland(self, tar: Path) -> None:
        """Debian packages for commands to come from."""
        self._archive.tar(tar)

    def file(self, name: str, data: bytes, executable: bool = False) -> None:
        """A file of the caller's own, which a command may use."""
        self._archive.file(name, data, executable)

    def command(self, argv: list[str], folder: str = "/") -> None:
        """Run a program and wait for it."""
        self._say("command", folder, *argv)

    def export(self) -> None:
        """Send the disk's non-empty blocks out by the virtio disk."""
        self._modules(_EXPORT_MODULES)
        self._say("export", DISK, "/dev/vda")

    def pack(self) -> bytes:
        """The initramfs."""
        self._archive.file("fsexp/setup", _lines(self._directives))
        aliases = kernels.aliases(self._kernel.description, self._loaded)
        for module in sorted({name for order in aliases.values() for name in order}):
            self._add_module(module)
        table = [(alias, *map(_module_path, order)) for alias, order in sorted(aliases.items())]
        self._archive.file("fsexp/aliases", _lines(table))
        return self._archive.pack()

    def _modules(self, names: Iterable[str], parameters: dict[str, str] | None = None) -> None:
        for name in kernels.load_order(self._kernel.description, list(names)):
            if name not in self._loaded:
                self._loaded.append(name)
                self._add_module(name)
                self._say("module", _module_path(name), (parameters or {}).get(name, ""))

    def _add_module(self, name: str) -> None:
        entry = self._kernel.description["modules"][name]
        self._archive.file(_module_path(name), (self._kernel.folder / entry["file"]).read_bytes())

    def _say(self, *fields: str) -> None:
        self._directives.append(fields)


def _module_path(name: str) -> str:
    return f"/fsexp/modules/{name}.ko"


def _lines(rows: Iterable[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()
