"""A kernel image: the bzImage of the x86 boot protocol, and the vmlinux inside it."""

import bz2
import lzma
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import zstandard

from fsexp.errors import UserError

_PT_NOTE = 4
# QEMU enters an ELF image through this note, see XEN_ELFNOTE_PHYS32_ENTRY in Linux's elfnote.h.
_PVH_NOTE = (b"Xen\0", 18)


@dataclass(frozen=True)
class Header:
    """What the setup header of a bzImage says. `payload` is None below boot protocol 2.08."""

    protocol: int
    release: str
    payload: slice | None


@dataclass(frozen=True)
class Bootable:
    """An image to boot: `format` is "elf" or "bzImage", `compression` what the bzImage used."""

    data: bytes
    format: str
    release: str
    compression: str | None


def header(image: bytes) -> Header:
    """Parse the setup header. UserError when this is no bzImage."""
    if len(image) < 0x270 or image[0x202:0x206] != b"HdrS" or image[0x1FE:0x200] != b"\x55\xaa":
        raise UserError("The kernel image is not a bzImage: it has no setup header.")
    (protocol,) = struct.unpack_from("<H", image, 0x206)
    (version_at,) = struct.unpack_from("<H", image, 0x20E)
    release = ""
    if version_at:
        text = image[0x200 + version_at : 0x200 + version_at + 256].split(b"\0", 1)[0]
        release = text.decode("utf-8", "replace").split(" ", 1)[0]
    payload = None
    if protocol >= 0x208:
        setup_sectors = image[0x1F1] or 4  # zero means four, for the sake of very old loaders
        offset, length = struct.unpack_from("<II", image, 0x248)
        start = (setup_sectors + 1) * 512 + offset
        if start + length > len(image):
            raise UserError("The kernel image is cut short: its payload ends beyond the file.")
        payload = slice(start, start + length)
    return Header(protocol, release, payload)


def _gzip(data: bytes) -> bytes:
    return zlib.decompressobj(wbits=31).decompress(data)


def _lzma(data: bytes) -> bytes:
    # Decompressor objects, not the module's functions: they stop at the end of the stream, and
    # after it stands the size of the unpacked kernel.
    return lzma.LZMADecompressor().decompress(data)


def _bzip2(data: bytes) -> bytes:
    return bz2.BZ2Decompressor().decompress(data)


def _zstd(data: bytes) -> bytes:
    return zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj().decompress(data)


# magic, name, decompressor (None: this program has none, the bzImage is booted as it is)
COMPRESSIONS: list[tuple[bytes, str, Callable[[bytes], bytes] | None]] = [
    (b"\x1f\x8b", "gzip", _gzip),
    (b"\xfd7zXZ\0", "xz", _lzma),
    (b"\x5d\x00\x00", "lzma", _lzma),
    (b"BZh", "bzip2", _bzip2),
    (b"\x28\xb5\x2f\xfd", "zstd", _zstd),
    (b"\x02\x21\x4c\x18", "lz4", None),
    (b"\x89LZO", "lzo", None),
    (b"\x7fELF", "none", bytes),
]


def compression(image: bytes) -> str | None:
    """The name of the payload's compression, None when it isn't known."""
    found = _method(image)
    return found[0] if found else None


def vmlinux(image: bytes) -> bytes:
    """The unpacked kernel, an ELF file. UserError when it can't be unpacked here."""
    found = _method(image)
    if found is None:
        raise UserError("The kernel image is compressed in a way that this program doesn't know.")
    name, unpack = found
    if unpack is None:
        raise UserError(f"The kernel image is compressed with {name}, which can't be unpacked here.")
    payload = image[header(image).payload]
    try:
        kernel = unpack(payload)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, zstandard.ZstdError) as error:
        raise UserError(f"The kernel image's payload ({name}) is damaged: {error}.") from error
    if not kernel.startswith(b"\x7fELF"):
        raise UserError("The kernel image's payload is not an ELF file.")
    # The last four bytes of the payload are the unpacked size, in every compression.
    (size,) = struct.unpack("<I", payload[-4:])
    if name != "none" and size != len(kernel):
        raise UserError(f"The kernel image unpacks to {len(kernel)} bytes, but says {size}.")
    return kernel


def config(image: bytes) -> bytes | None:
    """The configuration that the kernel carries (CONFIG_IKCONFIG), None where there is none or it can't be read."""
    method = _method(image)
    if method is None or method[1] is None:
        return None
    # kernel/configs.c puts the gzip file between these two marks.
    found = re.search(rb"IKCFG_ST(\x1f\x8b.*?)IKCFG_ED", vmlinux(image), re.S)
    try:
        return _gzip(found[1]) if found else None
    except zlib.error:
        return None


def _method(image: bytes) -> tuple[str, Callable[[bytes], bytes] | None] | None:
    payload = header(image).payload
    if payload is None:
        return None
    start = image[payload.start : payload.start + 8]
    return next(((name, unpack) for magic, name, unpack in COMPRESSIONS if start.startswith(magic)), None)


def has_pvh_entry(kernel: bytes) -> bool:
    """Whether the ELF kernel has the note by which QEMU can enter it without a bzImage around."""
    if kernel[:6] != b"\x7fELF\x02\x01":
        return False
    (table,) = struct.unpack_from("<Q", kernel, 32)
    entry_bytes, entries = struct.unpack_from("<HH", kernel, 54)
    for number in range(entries):
        kind, _, offset, _, _, size = struct.unpack_from("<IIQQQQ", kernel, table + number * entry_bytes)
        if kind == _PT_NOTE and _PVH_NOTE in _notes(kernel[offset : offset + size]):
            return True
    return False


def _notes(data: bytes) -> list[tuple[bytes, int]]:
    notes, at = [], 0
    while at + 12 <= len(data):
        name_bytes, content_bytes, kind = struct.unpack_from("<III", data, at)
        notes.append((data[at + 12 : at + 12 + name_bytes], kind))
        at += 12 + (name_bytes + 3) // 4 * 4 + (content_bytes + 3) // 4 * 4
    return notes


def bootable(image: bytes) -> Bootable:
    """What to boot of a bzImage: the vmlinux inside when QEMU can enter it, else the bzImage.

    Unpacking here takes the time out of every boot.
    """
    said = header(image)
    method = _method(image)
    if method and method[1]:
        kernel = vmlinux(image)
        if has_pvh_entry(kernel):
            return Bootable(kernel, "elf", said.release, method[0])
    return Bootable(image, "bzImage", said.release, method[0] if method else None)
