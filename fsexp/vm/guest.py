"""What a guest is told to do: the initramfs it boots from, with the core as its first process.

The set-up is a list of directives that the core carries out in order (vmimages/core/README.md lists them).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsexp import digest, disk
from fsexp import userland as userlands
from fsexp.errors import UserError
from fsexp.image import bcache
from fsexp.image.formats import FORMATS
from fsexp.image.initramfs import Initramfs
from fsexp.kernel import modules as kernels
from fsexp.kernel import version

SETUP_VERSION = 1
MOUNTPOINT = "/mnt"

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

    @property
    def configuration(self) -> str | None:
        """The text of its .config, None where it is not known."""
        file = self.description["config"]["file"]
        return (self.folder / file).read_text(encoding="utf-8", errors="replace") if file else None

    @property
    def facts(self) -> disk.Facts:
        """What disks made in it depend on."""
        release = self.description["release"]
        return disk.Facts(release, version.parse(release), disk.hz(self.configuration))


# What a description must have for a guest to be made from it; a dictionary is of dictionaries with these members.
_KERNEL = {
    "release": str,
    "digest": str,
    "image": {"file": str, "sha256": str},
    "config": dict,
    "modules": dict,
    "builtin": list,
}
_MODULE = {"file": str, "sha256": str, "depends": list, "softdeps": list, "aliases": list}
_IMAGE = {"digest": str}
_USERLAND = {"digest": str}


def read_kernel(path: Path) -> Kernel:
    """The kernel that `path`, its kernel.json, describes. Raises UserError where there is none, or it is damaged.

    One that can't be had has "unavailable" in its description, and nothing else is sure to be there.
    """
    description = _json(path, "kernel", _KERNEL)
    for name, module in description.get("modules", {}).items():
        lacking = _lacking(module, _MODULE)
        if lacking:
            raise _damaged(path, "kernel", f"its module {name} has no {lacking}")
    return Kernel(path.parent, description)


def read_image(path: Path) -> dict[str, Any]:
    """What image.json at `path` says; "unavailable" with its reason where there is no image. Errors as read_kernel."""
    return _json(path, "image", _IMAGE)


def read_userland(path: Path) -> dict[str, Any]:
    """What userland.json at `path` says. Errors as read_kernel."""
    return _json(path, "userland", _USERLAND)


def _json(path: Path, what: str, members: dict[str, Any]) -> dict[str, Any]:
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"there is no {what} at {path}; `fsexp {what}` makes it") from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise _damaged(path, what, "it is not JSON") from None
    if isinstance(description, dict) and isinstance(description.get("unavailable"), str):
        return description
    lacking = _lacking(description, members)
    if lacking:
        raise _damaged(path, what, f"it has no {lacking}")
    return description


def _lacking(description: Any, members: dict[str, Any]) -> str:
    """The first member that is not there or of another type; empty when all are."""
    if not isinstance(description, dict):
        return "members"
    for name, kind in members.items():
        value = description.get(name)
        if isinstance(kind, dict):
            inner = _lacking(value, kind)
            if inner:
                return f"{name}.{inner}"
        elif not isinstance(value, kind):
            return name
    return ""


def _damaged(path: Path, what: str, problem: str) -> UserError:
    return UserError(f"{path} is damaged ({problem}); remove it and make it again with `fsexp {what}`")


def _read(path: Path, sha256: str, what: str) -> bytes:
    """A file's bytes, which must be those of the digest: it stands for them in a run's identity or provenance."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"there is no {path}; `fsexp {what}` makes it") from None
    if digest.of_bytes(data) != sha256:
        raise UserError(
            f"{path} is not what {what}.json beside it says; remove both, and make them again with `fsexp {what}`"
        )
    return data


class Guest:
    """One guest being described: its kernel, its directives and the files they name."""

    def __init__(self, kernel: Kernel, core: Path) -> None:
        if "unavailable" in kernel.description:
            raise UserError(f"the kernel in {kernel.folder} can't be had: {kernel.description['unavailable']}")
        # The digest stands for the image in a run's identity: other bytes must not bear it.
        if not kernel.image.exists() or digest.of_file(kernel.image) != kernel.description["image"]["sha256"]:
            raise UserError(
                f"{kernel.image} is not what its kernel.json says; remove {kernel.folder} and fetch it again"
            )
        self.kernel = kernel
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

    def disks(self, layout: disk.Layout) -> None:
        """Disks by the guest's own drivers. Raises disk.Unsupported where its kernel can't make them."""
        self._layout = layout
        self._told = disk.setup(layout, self.kernel.facts)
        for name, parameters in self._told.modules.items():
            self._modules([name], {name: parameters})
        self._directives += self._told.make

    @property
    def nodes(self) -> list[str]:
        """The disks' devices."""
        return self._told.nodes

    @property
    def arguments(self) -> list[str]:
        """What the kernel's command line says of the disks."""
        return self._told.arguments

    def image(self, path: Path) -> None:
        """The content of the disks, by its image.json.

        Raises UserError where there is none, or another than it says.
        """
        for number, (node, data) in enumerate(zip(self._told.nodes, self._images(path), strict=True)):
            self._archive.file(f"fsexp/images/{number}", data)
            self._say("image", node, f"/fsexp/images/{number}")

    def _images(self, path: Path) -> list[bytes]:
        description = read_image(path)
        if "unavailable" in description:
            raise UserError(f"the image in {path.parent} can't be made: {description['unavailable']}")
        # An image of one device is described by itself, those of several in a list.
        files = description.get("devices", [{"file": "image.fsimg", "digest": description["digest"]}])
        data = [_read(path.with_name(entry["file"]), entry["digest"], "image") for entry in files]
        sizes = [device.mib * disk.MIB for device in self._layout.devices]
        if self._layout.bcache:
            data = [bcache.backing(data[0], sizes[0], self._layout.bcache), bcache.cache(sizes[1])]
        if len(data) != len(sizes):
            raise UserError(f"{path} is of {len(data)} devices, and the disk has {len(sizes)}")
        return data

    def mount(self, type_: str, options: str) -> None:
        """Give the disks their latency, mount what is on them, and prove it."""
        self._modules(FORMATS[type_].modules)
        self.slow()
        options = ",".join(filter(None, (self._told.options, options)))
        self._say("mount", self._told.mounted, type_, MOUNTPOINT, options, f"{FORMATS[type_].magic:#x}")

    def slow(self) -> None:
        """Give the disks their latency; then join those that are one device together. Once is enough."""
        self._directives += self._told.slow
        self._modules(self._told.join_modules)
        self._directives += self._told.join
        self._told.slow, self._told.join = [], []

    def calibrate(self) -> None:
        """Measure each device, without a filesystem."""
        for node in self._told.nodes:
            self._say("calibrate", node)

    def ops(self, path: Path) -> None:
        """Replay a stream of operations in the mounted filesystem."""
        try:
            self._archive.file("fsexp/ops", path.read_bytes())
        except FileNotFoundError:
            raise UserError(f"there is no stream of operations at {path}; `fsexp ops` makes it") from None
        self._say("ops", "/fsexp/ops", MOUNTPOINT)

    def umount(self) -> None:
        """Unmount the filesystem."""
        self._say("umount", MOUNTPOINT)

    def userland(self, path: Path) -> None:
        """Debian packages for commands to come from, by their userland.json. Errors as image."""
        tar = path.with_name("root.tar")
        description = read_userland(path)
        userlands.check_kernel(description, self.kernel.description["release"])
        _read(tar, description["digest"], "userland")
        self._archive.tar(tar)

    def file(self, name: str, data: bytes, executable: bool = False) -> None:
        """A file of the caller's own, which a command may use."""
        self._archive.file(name, data, executable)

    def command(self, argv: list[str], folder: str = "/") -> None:
        """Run a program and wait for it."""
        self._say("command", folder, *argv)

    def export(self, offsets_bytes: Iterable[int] = (0,)) -> None:
        """Send the disks' non-empty blocks out by the virtio disk, each from its offset on."""
        self._modules(_EXPORT_MODULES)
        for node, offset_bytes in zip(self._told.nodes, offsets_bytes, strict=True):
            self._say("export", node, "/dev/vda", *([str(offset_bytes)] if offset_bytes else []))

    def pack(self) -> bytes:
        """The initramfs."""
        self._archive.file("fsexp/setup", _lines(self._directives))
        aliases = kernels.aliases(self.kernel.description, self._loaded)
        for module in sorted({name for order in aliases.values() for name in order}):
            self._add_module(module)
        table = [(alias, *map(_module_path, order)) for alias, order in sorted(aliases.items())]
        self._archive.file("fsexp/aliases", _lines(table))
        return self._archive.pack()

    def _modules(self, names: Iterable[str], parameters: dict[str, str] | None = None) -> None:
        for name in kernels.load_order(self.kernel.description, list(names)):
            if name not in self._loaded:
                self._loaded.append(name)
                self._add_module(name)
                self._say("module", _module_path(name), (parameters or {}).get(name, ""))

    def _add_module(self, name: str) -> None:
        entry = self.kernel.description["modules"][name]
        path = self.kernel.folder / entry["file"]
        if not path.exists() or digest.of_file(path) != entry["sha256"]:
            raise UserError(f"{path} is not what kernel.json says; remove {self.kernel.folder} and fetch it again")
        self._archive.file(_module_path(name), path.read_bytes())

    def _say(self, *fields: str) -> None:
        self._directives.append(fields)


def _module_path(name: str) -> str:
    return f"/fsexp/modules/{name}.ko"


def _lines(rows: Iterable[tuple[str, ...]]) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()
