"""Compressed files, told by their first bytes and not by their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import zstandard

from fsexp.errors import UserError

_MAGIC = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
    b"\x28\xb5\x2f\xfd": lambda file: zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(
        file, read_across_frames=True
    ),
}
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the file's content, decompressed. Raises UserError where it can't be read or is damaged."""
    try:
        with path.open("rb") as file:
            start = file.read(6)
            file.seek(0)
            opener = next((o for magic, o in _MAGIC.items() if start.startswith(magic)), None)
            if opener is None:
                yield file
            else:
                with opener(file) as plain:
                    yield plain
    except _DAMAGED as error:
        raise UserError(f"{path} is damaged: {error}.") from error
    except OSError as error:
        if error.errno is not None:
            raise
        raise UserError(f"{path} is damaged: {error}.") from error  # bz2 has no error of its own


def read(path: Path) -> bytes:
    """The file's whole content, decompressed."""
    with opened(path) as file:
        return file.read()
