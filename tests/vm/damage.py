"""Inputs of a run, broken on purpose."""

import hashlib
import json
import struct
import zlib

SUPERBLOCK = 1024  # ext4's, in bytes from the start of the disk
_HEADER = struct.calcsize("<8sIIQ")
_EXTENT = struct.calcsize("<QI")


def copy_image(description, folder):
    """An image's description and content in a new folder; returns the path of the description."""
    folder.mkdir(parents=True)
    for name in (description.name, "image.fsimg"):
        (folder / name).write_bytes(description.with_name(name).read_bytes())
    return folder / description.name


def overwrite_superblock(description):
    """Put nonsense in ext4's superblock, and mend the image's own checksum, so that it arrives as it is."""
    path = description.with_name("image.fsimg")
    data = bytearray(path.read_bytes())
    first_block, _ = struct.unpack_from("<QI", data, _HEADER)
    assert first_block == 0
    at = _HEADER + _EXTENT + SUPERBLOCK
    assert data[at + 0x38 : at + 0x3A] == b"\x53\xef"
    data[at : at + 1024] = b"\xa5" * 1024
    data[-4:] = struct.pack("<I", zlib.crc32(data[:-12]))
    path.write_bytes(data)
    _sign(description)


def flip_checksum(description):
    """Change the image's checksum."""
    path = description.with_name("image.fsimg")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    _sign(description)


def _sign(description):
    """Put the digest of the image as it is now into its description, so that it is not refused before the boot."""
    content = json.loads(description.read_text())
    content["digest"] = hashlib.sha256(description.with_name("image.fsimg").read_bytes()).hexdigest()
    description.write_text(json.dumps(content))


def drop_module(description, name):
    """Take a module out of a kernel's description."""
    content = json.loads(description.read_text())
    del content["modules"][name]
    description.unlink()  # it may be a link to the description of the kernel that is whole
    description.write_text(json.dumps(content))


_ENDBR64, _CALL = b"\xf3\x0f\x1e\xfa", 0xE8
_UD2 = b"\x0f\x0b"


def make_oops(description, name):
    """Begin a module's start with an instruction that no processor has."""
    path = description.with_name("modules") / f"{name}.ko"
    data = bytearray(path.read_bytes())
    _overwrite_start(data)
    path.unlink()
    path.write_bytes(data)
    content = json.loads(description.read_text())
    content["modules"][name]["sha256"] = hashlib.sha256(data).hexdigest()
    description.unlink()  # it may be a link to the description of the kernel that is whole
    description.write_text(json.dumps(content))


def _overwrite_start(elf):
    """Put the instruction into `init_module` of a relocatable ELF file (elf(5)), in place."""
    (sections_at,) = struct.unpack_from("<Q", elf, 40)
    size, count = struct.unpack_from("<HH", elf, 58)
    # name, type, flags, address, offset, size, link
    sections = [struct.unpack_from("<IIQQQQI", elf, sections_at + size * number) for number in range(count)]
    symbols = next(section for section in sections if section[1] == 2)
    names_at = sections[symbols[6]][4]
    for at in range(symbols[4], symbols[4] + symbols[5], 24):
        name_at, _, _, home, value = struct.unpack_from("<IBBHQ", elf, at)
        if elf[names_at + name_at :].startswith(b"init_module\0"):
            break
    base = sections[home][4]
    # Past the call that the kernel puts in and its tracer looks for.
    value += 4 if elf[base + value :].startswith(_ENDBR64) else 0
    value += 5 if elf[base + value] == _CALL else 0
    elf[base + value : base + value + 2] = _UD2
