import bz2
import gzip
import lzma
import struct

import packages
import pytest
import zstandard

from fsexp.errors import UserError
from fsexp.kernel import image


def sized(data, packed):
    return packed + struct.pack("<I", len(data))


PACK = {
    "gzip": gzip.compress,  # has its size at the end by itself
    "xz": lambda data: sized(data, lzma.compress(data)),
    "lzma": lambda data: sized(data, lzma.compress(data, format=lzma.FORMAT_ALONE)),
    "bzip2": lambda data: sized(data, bz2.compress(data)),
    "zstd": lambda data: sized(data, zstandard.ZstdCompressor().compress(data)),
    "none": bytes,
}


@pytest.mark.parametrize("method", PACK)
def test_the_kernel_is_taken_out_of_every_compression(method):
    kernel = packages.make_vmlinux()
    booted = image.bootable(packages.make_bzimage(PACK[method](kernel)))
    assert booted == image.Bootable(kernel, "elf", "6.1.0-1-amd64", method)


def test_a_kernel_without_pvh_entry_stays_a_bzimage():
    whole = packages.make_bzimage(gzip.compress(packages.make_vmlinux(pvh=False)))
    booted = image.bootable(whole)
    assert (booted.format, booted.data, booted.compression) == ("bzImage", whole, "gzip")


@pytest.mark.parametrize(("magic", "name"), [(b"\x02\x21\x4c\x18", "lz4"), (b"\x89LZO\0\r\n", "lzo")])
def test_what_cannot_be_unpacked_is_booted_as_it_is(magic, name):
    whole = packages.make_bzimage(magic + bytes(100))
    assert (image.bootable(whole).format, image.bootable(whole).compression) == ("bzImage", name)
    with pytest.raises(UserError, match=name):
        image.vmlinux(whole)


def test_an_unknown_compression_is_none():
    assert image.bootable(packages.make_bzimage(b"what is this?" * 9)).compression is None


def test_a_wrong_size_is_noticed():
    kernel = packages.make_vmlinux()
    whole = packages.make_bzimage(lzma.compress(kernel) + struct.pack("<I", len(kernel) + 1))
    with pytest.raises(UserError, match="but says 5001"):
        image.bootable(whole)


def test_a_damaged_payload_is_a_clear_error():
    packed = bytearray(PACK["xz"](packages.make_vmlinux()))
    packed[40] ^= 255
    with pytest.raises(UserError, match="damaged"):
        image.bootable(packages.make_bzimage(bytes(packed)))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", bytes(4096)])
def test_what_is_no_bzimage(data):
    with pytest.raises(UserError, match="not a bzImage"):
        image.header(data)


def test_a_cut_image_is_noticed():
    whole = packages.make_bzimage(PACK["xz"](packages.make_vmlinux()))
    with pytest.raises(UserError, match="cut short"):
        image.header(whole[:-150])


def test_an_old_boot_protocol_has_no_payload():
    whole = bytearray(packages.make_bzimage(b"x"))
    struct.pack_into("<H", whole, 0x206, 0x207)
    assert image.bootable(bytes(whole)).format == "bzImage"
