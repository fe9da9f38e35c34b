"""Kernel modules: what a .ko file says of itself, which of them to keep, in which order to load them.

Modules go by the names the kernel shows, with underscores; hyphens are understood where names come in.
"""

import gzip
import lzma
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import zstandard

from fsexp.errors import UserError
from fsexp.kernel import ModuleMissing

# Modules to keep of every kernel, and what for. What they depend on is kept too.
WANTED = {
    "brd": "disk model ram",
    "loop": "files as disks",
    "scsi_debug": "disk models with a latency",
    "null_blk": "disk models with a latency",
    "sd_mod": "SCSI disks",
    "dm_mod": "device-mapper",
    "dm_delay": "device-mapper, latency",
    "dm_flakey": "device-mapper, errors",
    "bcache": "stack of a fast and a slow disk",
    "virtio_pci": "disks under the wall clock, output",
    "virtio_blk": "disks under the wall clock, output",
    "virtio_scsi": "disks under the wall clock",
    "nvme": "emulated disks",
    "ahci": "emulated disks",
    "ext4": "filesystem",
    "ext2": "filesystem",
    "btrfs": "filesystem",
    "xfs": "filesystem",
    "f2fs": "filesystem",
    "jfs": "filesystem",
    "crc32c_intel": "checksums of ext4, btrfs, xfs",
    "crc32c_generic": "checksums of ext4, btrfs, xfs",
    "crc32c_cryptoapi": "checksums of btrfs, where crc32c moved into the library",
    "libcrc32c": "checksums of btrfs, xfs",
}

# The options of the kernel's configuration that decide on them: obj-$(CONFIG_...) in Linux's Makefiles.
OPTIONS = {
    "brd": "BLK_DEV_RAM",
    "loop": "BLK_DEV_LOOP",
    "scsi_debug": "SCSI_DEBUG",
    "null_blk": "BLK_DEV_NULL_BLK",
    "sd_mod": "BLK_DEV_SD",
    "dm_mod": "BLK_DEV_DM",
    "dm_delay": "DM_DELAY",
    "dm_flakey": "DM_FLAKEY",
    "bcache": "BCACHE",
    "virtio_pci": "VIRTIO_PCI",
    "virtio_blk": "VIRTIO_BLK",
    "virtio_scsi": "SCSI_VIRTIO",
    "nvme": "BLK_DEV_NVME",
    "ahci": "SATA_AHCI",
    "ext4": "EXT4_FS",
    "ext2": "EXT2_FS",
    "btrfs": "BTRFS_FS",
    "xfs": "XFS_FS",
    "f2fs": "F2FS_FS",
    "jfs": "JFS_FS",
    "crc32c_intel": "CRYPTO_CRC32C_INTEL",
    "crc32c_generic": "CRYPTO_CRC32C",
    "crc32c_cryptoapi": "CRYPTO_CRC32C",
    "libcrc32c": "LIBCRC32C",
}

# Algorithms that filesystems ask the kernel's crypto interface for; all their modules are kept.
WANTED_ALIASES = {
    "crypto-crc32c": "checksums of ext4, btrfs, xfs",
    "crypto-crc32": "checksums of f2fs",
    "crypto-xxhash64": "checksums of btrfs",
    "crypto-sha256": "checksums of btrfs",
    "crypto-blake2b-256": "checksums of btrfs",
    "crypto-lzo": "compression",
    "crypto-lzo-rle": "compression",
    "crypto-lz4": "compression",
    "crypto-zstd": "compression",
    "crypto-deflate": "compression",
}

# Where modules lie that provide algorithms. Only these are searched by alias: a search of all modules
# would have to decompress thousands, and drivers for crypto hardware have no place in the guest.
ALGORITHM_FOLDERS = ("/crypto/", "/arch/x86/crypto/", "/lib/", "/arch/x86/lib/")
_NOT_ALGORITHMS = "/drivers/"

# Slow implementations: to load after the accelerated ones, so that who looks up an algorithm while
# they load finds the fast one, as on a real system.
_SLOW = re.compile(r"_(generic|cryptoapi)$")

# Users that keep the crc32c found when they load, whether or not they declare it.
_CRC32C_USERS = {"libcrc32c"}
_CRC32C = "crc32c"

_SIGNATURE_MARK = b"~Module signature appended~\n"
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Info:
    """The .modinfo section: names with underscores; `softdeps` as written (module names or aliases)."""

    depends: list[str] = field(default_factory=list)
    softdeps: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    vermagic: str = ""


@dataclass(frozen=True)
class Candidate:
    """A module that a kernel offers: its path below the modules folder, and how to read the file."""

    path: str
    read: Callable[[], bytes]


@dataclass(frozen=True)
class Module:
    """A module kept: plain ELF without a signature; `softdeps` are names of modules in the same set."""

    data: bytes
    depends: list[str]
    softdeps: list[str]
    aliases: list[str]
    vermagic: str


@dataclass(frozen=True)
class Selection:
    """The modules kept, by name, and the wanted names that the kernel has neither as file nor built in."""

    modules: dict[str, Module]
    lacking: list[str]


def normalise(name: str) -> str:
    return name.replace("-", "_")


_DECOMPRESS = {
    ".ko": bytes,
    ".ko.gz": gzip.decompress,
    ".ko.xz": lzma.decompress,
    ".ko.zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def name_of(path: str) -> str | None:
    """The name of the module in a file of that path, None when it is no module."""
    found = re.fullmatch(r"(?:.*/)?([^/]+?)(\.ko(?:\.(?:gz|xz|zst))?)", path)
    return normalise(found[1]) if found else None


def builtin_in(text: str) -> set[str]:
    """The names in a modules.builtin file."""
    return {name for name in map(name_of, text.split()) if name}


def builtin_by(config: bytes) -> set[str]:
    """Those of the wanted modules that a kernel of that configuration has built in."""
    on = set(re.findall(rb"^CONFIG_(\w+)=y\s*$", config, re.M))
    return {name for name, option in OPTIONS.items() if option.encode() in on}


def plain(path: str, data: bytes) -> bytes:
    """The module as the kernel loads it: decompressed, and the signature cut off."""
    suffix = path[path.rindex(".ko") :]
    try:
        return without_signature(_DECOMPRESS[suffix](data))
    except (OSError, EOFError, lzma.LZMAError, zstandard.ZstdError) as error:
        raise UserError(f"The module {path} can't be decompressed: {error}.") from error


def without_signature(data: bytes) -> bytes:
    """Cut off an appended signature: checking it would take part of every boot."""
    if not data.endswith(_SIGNATURE_MARK):
        return data
    trailer = len(data) - len(_SIGNATURE_MARK) - 12
    if trailer < 0:
        raise UserError("A module's signature is damaged.")
    # struct module_signature: algorithm, hash, kind of id, two lengths, padding, big-endian length
    signer_bytes, key_bytes, signature_bytes = struct.unpack_from(">3xBB3xI", data, trailer)
    end = trailer - signer_bytes - key_bytes - signature_bytes
    if end <= 0:
        raise UserError("A module's signature is damaged.")
    return data[:end]


def section(elf: bytes, name: str) -> bytes | None:
    """A section's content in a 64-bit little-endian ELF file, None when there is none of that name."""
    if elf[:6] != b"\x7fELF\x02\x01":
        raise UserError("A module is not a 64-bit little-endian ELF file.")
    try:
        (table,) = struct.unpack_from("<Q", elf, 40)
        entry_bytes, entries, names_at = struct.unpack_from("<HHH", elf, 58)

        def entry(number: int) -> tuple[int, int, int]:
            at = table + number * entry_bytes
            start, _, _, _, offset, size = struct.unpack_from("<IIQQQQ", elf, at)
            return start, offset, size

        _, names_offset, names_bytes = entry(names_at)
        names = elf[names_offset : names_offset + names_bytes]
        for number in range(entries):
            start, offset, size = entry(number)
            if names[start : names.index(b"\0", start)] == name.encode():
                return elf[offset : offset + size]
    except (struct.error, ValueError) as error:
        raise UserError("A module's ELF section table is damaged.") from error
    return None


def info(elf: bytes) -> Info:
    """What a module's .modinfo says."""
    values: dict[str, list[str]] = {}
    for item in (section(elf, ".modinfo") or b"").split(b"\0"):
        key, equals, value = item.decode("utf-8", "replace").partition("=")
        if equals:
            values.setdefault(key, []).append(value)
    depends = [normalise(name) for text in values.get("depends", []) for name in text.split(",") if name]
    return Info(
        depends=depends,
        softdeps=[name for text in values.get("softdep", []) for name in _pre(text)],
        aliases=values.get("alias", []),
        vermagic=" ".join(values.get("vermagic", [])),
    )


def _pre(softdep: str) -> list[str]:
    names, kind = [], None
    for word in softdep.split():
        if word.endswith(":"):
            kind = word
        elif kind == "pre:":
            names.append(word)
    return names


def select(candidates: Mapping[str, Candidate], builtin: Iterable[str]) -> Selection:
    """Of the modules a kernel offers (by name), those that are wanted and all they need."""
    builtin = set(builtin)
    read: dict[str, tuple[bytes, Info]] = {}

    def get(name: str) -> tuple[bytes, Info]:
        if name not in read:
            data = plain(candidates[name].path, candidates[name].read())
            read[name] = (data, info(data))
        return read[name]

    providers: dict[str, list[str]] = {}
    for name in sorted(candidates):
        path = "/" + candidates[name].path
        # Modules without folders were gathered by hand: they are few, and nothing says which are algorithms.
        known = any(folder in path for folder in ALGORITHM_FOLDERS) or path.count("/") == 1
        if known and _NOT_ALGORITHMS not in path:
            for alias in get(name)[1].aliases:
                providers.setdefault(alias, []).append(name)

    def resolve(word: str) -> list[str]:
        # As modprobe does: a module's name goes before aliases; nobody there is no error.
        name = normalise(word)
        if name in candidates:
            return [name]
        return [] if name in builtin else sorted(providers.get(word, []), key=_speed)

    kept: dict[str, Module] = {}
    waiting = [normalise(name) for name in WANTED if normalise(name) in candidates]
    waiting += [name for alias in WANTED_ALIASES for name in providers.get(alias, [])]
    while waiting:
        name = waiting.pop()
        if name in kept:
            continue
        data, said = get(name)
        depends = [other for other in said.depends if other not in builtin]
        for other in depends:
            if other not in candidates:
                raise ModuleMissing(other)
        softdeps = list(dict.fromkeys(n for word in said.softdeps for n in resolve(word) if n != name))
        literal = sorted({alias for alias in said.aliases if not _PATTERN.search(alias)})
        kept[name] = Module(data, depends, softdeps, literal, said.vermagic)
        waiting += depends + softdeps
    lacking = sorted(n for n in WANTED if n not in kept and n not in builtin)
    return Selection(dict(sorted(kept.items())), lacking)


def load_order(kernel: dict, names: Iterable[str]) -> list[str]:
    """The modules to load, in order, so that `names` can be loaded: all they need first, nothing twice.

    `kernel` is the content of a kernel.json. Built-in names are left out. ModuleMissing when the
    kernel has a name neither as a module nor built in.
    """
    modules, builtin = kernel["modules"], set(kernel["builtin"])
    order: dict[str, None] = {}
    open_names: set[str] = set()

    def visit(name: str) -> None:
        name = normalise(name)
        if name in order or name in open_names or name in builtin:
            return
        if name not in modules:
            raise ModuleMissing(name, kernel.get("release", "this kernel"), kernel.get("builtin_unknown", False))
        open_names.add(name)
        for other in modules[name]["softdeps"]:
            if normalise(other) in modules:
                visit(other)
        for other in modules[name]["depends"]:
            visit(other)
        open_names.discard(name)
        order[name] = None

    names = list(names)
    for name in names:
        visit(name)
    checksums = _providers(kernel, _CRC32C)
    if any(name in _CRC32C_USERS or set(modules[name]["softdeps"]) & set(checksums) for name in order):
        order.clear()
        for name in checksums + names:
            visit(name)
    return list(order)


def aliases(kernel: dict, names: Iterable[str]) -> dict[str, list[str]]:
    """What to load when the kernel asks for an alias: {alias: load order}, sorted by alias.

    Covers the modules that `names` need and every algorithm the kernel's set has; a module can also be
    asked for by its own name.
    """
    modules = kernel["modules"]
    covered = set(load_order(kernel, names))
    covered |= {name for name in modules if any(a.startswith("crypto-") for a in modules[name]["aliases"])}
    wanted: dict[str, list[str]] = {}
    for name in sorted(covered, key=_speed):
        for alias in {name, name.replace("_", "-"), *modules[name]["aliases"]}:
            wanted.setdefault(alias, []).append(name)
    return {alias: load_order(kernel, wanted[alias]) for alias in sorted(wanted)}


def _providers(kernel: dict, algorithm: str) -> list[str]:
    names = [n for n, module in kernel["modules"].items() if f"crypto-{algorithm}" in module["aliases"]]
    return sorted(names, key=_speed)


def _speed(name: str) -> tuple[bool, str]:
    return bool(_SLOW.search(name)), name
