"""Small Debian packages, ELF modules and kernel images, made for tests."""

import bz2
import gzip
import hashlib
import io
import lzma
import struct
import tarfile
from pathlib import Path

import zstandard

COMPRESS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def make_deb(path, files, compression=".xz"):
    """A .deb at `path`; files: {"./usr/bin/x": bytes | ("link", target) | ("hard", target) | (mode, bytes)}."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.mtime, member.uid, member.uname = 12345, 7, "somebody"
            member.mode = 0o644
            match content:
                case ("link", target):
                    member.type, member.linkname = tarfile.SYMTYPE, target
                case ("hard", target):
                    member.type, member.linkname = tarfile.LNKTYPE, target
                case (int(mode), None):
                    member.type, member.mode = tarfile.DIRTYPE, mode
                case (int(mode), data):
                    member.mode, member.size = mode, len(data)
                case _:
                    data = content
                    member.size = len(data)
            tar.addfile(member, io.BytesIO(data) if member.size else None)
    members = [("debian-binary", b"2.0\n"), ("control.tar.xz", lzma.compress(b"")[:31])]
    members.append((f"data.tar{compression}", COMPRESS[compression](stream.getvalue())))
    raw = b"!<arch>\n"
    for name, data in members:
        raw += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data
        raw += b"\n" * (len(data) % 2)
    Path(path).write_bytes(raw)
    return path


def deb_record(path):
    """The lock file's record of a .deb named as in the archive."""
    package, version, _ = Path(path).name.split("_")
    data = Path(path).read_bytes()
    return {
        "package": package,
        "version": version,
        "sha256": hashlib.sha256(data).hexdigest(),
        "bytes": len(data),
        "filename": f"pool/main/x/{Path(path).name}",
    }


def make_module(release="6.1.0-1-amd64", **modinfo):
    """A 64-bit ELF file with nothing but .modinfo; values are a text or a list of texts."""
    values = {"vermagic": f"{release} SMP", **modinfo}
    info = b""
    for key, value in values.items():
        for text in [value] if isinstance(value, str) else value:
            info += f"{key}={text}".encode() + b"\0"
    names = b"\0.modinfo\0.shstrtab\0"
    at_info, at_names = 64, 64 + len(info)
    table = at_names + len(names)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)

    def section(name, kind, offset, size):
        return struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, offset, size, 0, 0, 1, 0)

    sections = section(0, 0, 0, 0) + section(1, 1, at_info, len(info)) + section(10, 3, at_names, len(names))
    return header + info + names + sections


def sign(module, signature=b"s" * 300):
    trailer = struct.pack(">BBBBB3xI", 0, 0, 2, 0, 0, len(signature))
    return module + signature + trailer + b"~Module signature appended~\n"


def make_vmlinux(pvh=True, size=5000):
    """A 64-bit ELF file with a PT_NOTE segment."""
    note = struct.pack("<III", 4, 3, 1) + b"GNU\0" + b"abc\0"
    note += struct.pack("<III", 4, 8, 18 if pvh else 6) + b"Xen\0" + struct.pack("<Q", 0x1000000)
    header = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, 0, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    loads = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, 64, 64, 4096)
    notes = struct.pack("<IIQQQQQQ", 4, 4, 176, 0, 0, len(note), len(note), 4)
    return (header + loads + notes + note).ljust(size, b"\x90")


def make_bzimage(payload, release="6.1.0-1-amd64"):
    """A bzImage of boot protocol 2.15 around the payload as given."""
    setup_sectors = 3
    image = bytearray((setup_sectors + 1) * 512)
    image[0x1F1] = setup_sectors
    image[0x1FE:0x200] = b"\x55\xaa"
    image[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", image, 0x206, 0x20F)
    struct.pack_into("<H", image, 0x20E, 0x400)
    text = f"{release} (someone@example) #1 SMP\0".encode()
    image[0x600 : 0x600 + len(text)] = text
    struct.pack_into("<II", image, 0x248, 100, len(payload))
    return bytes(image) + b"\xcc" * 100 + payload + b"\xcc" * 64
