"""The initramfs: a newc cpio archive whose bytes depend on its content only.

Not compressed: unpacking costs the guest more than the loader needs for the bytes.
"""

from __future__ import annotations

import stat
import tarfile
from pathlib import Path, PurePosixPath

# The name that ends an archive.
_TRAILER = "TRAILER!!!"
_FILE, _FOLDER, _LINK, _CHARACTER = stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK, stat.S_IFCHR


class Initramfs:
    """An archive being put together; a later entry of the same name replaces the earlier one."""

    def __init__(self) -> None:
        self._entries: dict[str, tuple[int, bytes, tuple[int, int]]] = {}

    def file(self, name: str, data: bytes, executable: bool = False) -> None:
        """A regular file, and the folders above it."""
        self._add(name, _FILE | (0o755 if executable else 0o644), data)

    def folder(self, name: str) -> None:
        """A folder, and those above it."""
        self._add(name, _FOLDER | 0o755, b"")

    def link(self, name: str, target: str) -> None:
        """A symbolic link."""
        self._add(name, _LINK | 0o777, target.encode())

    def character_device(self, name: str, major: int, minor: int) -> None:
        """A character device; the archive is data, so no privilege is needed."""
        self._add(name, _CHARACTER | 0o600, b"", (major, minor))

    def tar(self, path: Path) -> None:
        """The content of a tar file (a userland)."""
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isdir():
                    self.folder(member.name)
                elif member.issym():
                    self.link(member.name, member.linkname)
                elif member.isreg() or member.islnk():
                    source = archive.extractfile(member)
                    assert source is not None
                    self.file(member.name, source.read(), bool(member.mode & 0o111))

    def pack(self) -> bytes:
        """The archive: entries by name, numbered from 1, owned by root, dated 0."""
        out = bytearray()
        for number, name in enumerate(sorted(self._entries), start=1):
            mode, data, device = self._entries[name]
            out += _header(number, mode, data, device, name)
        out += _header(0, 0, b"", (0, 0), _TRAILER)
        return bytes(out)

    def _add(self, name: str, mode: int, data: bytes, device: tuple[int, int] = (0, 0)) -> None:
        path = PurePosixPath(name.lstrip("/"))
        if ".." in path.parts:
            raise ValueError(f"{name} leaves the archive")
        if str(path) == _TRAILER:
            raise ValueError(f"{name} would end the archive")
        for parent in path.parents:
            if str(parent) != ".":
                self._entries.setdefault(str(parent), (_FOLDER | 0o755, b"", (0, 0)))
        self._entries[str(path)] = (mode, data, device)


def _header(number: int, mode: int, data: bytes, device: tuple[int, int], name: str) -> bytes:
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(mode) else 1
    fields = (number, mode, 0, 0, links, 0, len(data), 0, 0, *device, len(encoded), 0)
    head = b"070701" + b"".join(b"%08X" % value for value in fields) + encoded
    return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)
