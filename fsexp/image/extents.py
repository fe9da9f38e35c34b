"""The bytes of an image: the non-empty blocks of a disk, as vmimages/core/README.md describes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

MAGIC = b"FSEXPIMG"
VERSION = 1
BLOCK_BYTES = 4096
END = 0xFFFFFFFFFFFFFFFF
MOST_BLOCKS = 1024  # of one extent
_HEADER = struct.Struct("<8sIIQ")
_EXTENT = struct.Struct("<QI")

Extent = tuple[int, memoryview | bytes]  # the first block, the blocks


def read(image: bytes) -> Iterator[Extent]:
    """The extents in order. One that is cut off ends them: who needs the image whole checks its digest."""
    place = _HEADER.size
    view = memoryview(image)
    while place + _EXTENT.size <= len(image):
        first, count = _EXTENT.unpack_from(image, place)
        if first == END:
            return
        place += _EXTENT.size
        yield first, view[place : place + count * BLOCK_BYTES]
        place += count * BLOCK_BYTES


def disk_bytes(image: bytes) -> int:
    """The size of the disk that the image is of."""
    return _HEADER.unpack_from(image)[3]


def pack(extents: Iterable[Extent], disk_bytes: int) -> bytes:
    """An image of a disk of that size."""
    parts: list[bytes | memoryview] = [_HEADER.pack(MAGIC, VERSION, BLOCK_BYTES, disk_bytes)]
    for first, blocks in extents:
        for at in range(0, len(blocks), MOST_BLOCKS * BLOCK_BYTES):
            part = blocks[at : at + MOST_BLOCKS * BLOCK_BYTES]
            parts += [_EXTENT.pack(first + at // BLOCK_BYTES, len(part) // BLOCK_BYTES), part]
    data = b"".join(parts)
    return data + _EXTENT.pack(END, zlib.crc32(data))
