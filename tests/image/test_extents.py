"""The bytes of an image, by the description in vmimages/core/README.md."""

import struct
import zlib

from fsexp.image import extents

BLOCK = 4096


def image(*parts, size=2**30):
    data = struct.pack("<8sIIQ", b"FSEXPIMG", 1, BLOCK, size)
    for first, content in parts:
        data += struct.pack("<QI", first, len(content) // BLOCK) + content
    return data + struct.pack("<QI", 2**64 - 1, zlib.crc32(data))


PARTS = [(0, b"a" * BLOCK), (7, b"b" * 2 * BLOCK), (300, b"c" * BLOCK)]


def test_round_trip():
    data = image(*PARTS)
    assert [(first, bytes(blocks)) for first, blocks in extents.read(data)] == PARTS
    assert extents.disk_bytes(data) == 2**30
    assert extents.pack(extents.read(data), 2**30) == data


def test_an_extent_has_1024_blocks_at_most():
    whole = b"d" * 2500 * BLOCK
    parts = [(10, whole[: 1024 * BLOCK]), (1034, whole[: 1024 * BLOCK]), (2058, whole[: 452 * BLOCK])]
    assert extents.pack([(10, whole)], 2**30) == image(*parts)


def test_an_empty_disk():
    assert list(extents.read(image())) == []
    assert extents.pack([], 2**30) == image()
