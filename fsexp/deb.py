"""A Debian package as a file: an ar archive around a compressed tar of what it installs."""

import bz2
import gzip
import io
import lzma
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from fsexp.errors import UserError

_OPENERS = {
    "data.tar": lambda file: file,
    "data.tar.gz": gzip.open,
    "data.tar.bz2": bz2.open,
    "data.tar.xz": lzma.open,
    "data.tar.lzma": lzma.open,
    "data.tar.zst": lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
}


@contextmanager
def contents(path: Path) -> Iterator[tarfile.TarFile]:
    """The tar of the package's files, seekable. UserError when the file is no package.

    It is unpacked into an unnamed temporary file: kernels unpack to 400 MB, and which modules are
    wanted is known only after some of them were read.
    """
    with path.open("rb") as file, tempfile.TemporaryFile(dir=path.parent) as plain:
        name, window = _data_member(path, file)
        try:
            shutil.copyfileobj(_OPENERS[name](window), plain, 1 << 20)
            plain.seek(0)
            with tarfile.open(fileobj=plain, mode="r:") as tar:
                yield tar
        except (EOFError, lzma.LZMAError, zstandard.ZstdError, tarfile.TarError) as error:
            raise UserError(f"{path} is damaged ({error}); remove it to have it fetched again.") from error


def installed_path(name: str, merged: bool = True) -> str:
    """A tar member's path as installed, without a leading slash; under usr/ where /usr is merged."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if merged and parts and parts[0] in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        parts.insert(0, "usr")
    return "/".join(parts)


def _data_member(path: Path, file: BinaryIO) -> tuple[str, BinaryIO]:
    if file.read(8) != b"!<arch>\n":
        raise UserError(f"{path} is not a Debian package; remove it to have it fetched again.")
    while len(header := file.read(60)) == 60:
        name = header[:16].decode("ascii", "replace").rstrip(" /")
        size = int(header[48:58])
        if name in _OPENERS:
            return name, _Window(file, size)
        file.seek(size + size % 2, io.SEEK_CUR)  # members begin at even offsets
    raise UserError(f"{path} holds no data.tar in a known compression.")


class _Window(io.RawIOBase):
    """The next `size` bytes of a file."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file, self._left = file, size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:
        data = self._file.read(min(len(buffer), self._left))
        buffer[: len(data)] = data
        self._left -= len(data)
        return len(data)
