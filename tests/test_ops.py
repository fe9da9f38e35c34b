"""The stream of operations."""

import hashlib
import inspect
import os
import re
from pathlib import Path

import pytest

from fsexp import ops, workload
from fsexp.errors import UserError

# By hand from the layout: 300 is 0xAC 0x02 in LEB128; 0o555 is 365 = 0xED 0x02.
HEADER = b"FSEXPOPS\x02\0\0\0"
BYTES = HEADER + b"\x01\x06create\0" + b"\x11\x010\0\xed\x02" + b"\x02" + b"\x03"


def test_bytes_by_hand(tmp_path):
    path = tmp_path / "x.ops"
    digest = ops.write(path, [ops.phase("create"), ops.create("0", 0o555), ops.phase_end()])
    assert path.read_bytes() == BYTES
    assert digest == hashlib.sha256(BYTES).hexdigest()
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.ops"]


def test_long_path_has_a_two_byte_length():
    assert ops.unlink("a" * 300) == b"\x12\xac\x02" + b"a" * 300 + b"\0"


def test_reads_back():
    assert list(ops.read(BYTES)) == [
        ("phase", ["create"]),
        ("create", ["0", 0o555]),
        ("phase-end", []),
        ("end", []),
    ]


@pytest.mark.parametrize("length", range(len(BYTES)))
def test_a_cut_stream_is_refused(length):
    with pytest.raises(UserError):
        list(ops.read(BYTES[:length]))


@pytest.mark.parametrize(
    "data", [BYTES + b"\0", BYTES.replace(b"\x11", b"\x7e"), b"X" + BYTES[1:], BYTES.replace(b"0\0", b"00")]
)
def test_a_damaged_stream_is_refused(data):
    with pytest.raises(UserError):
        list(ops.read(data))


def test_a_failed_generator_leaves_no_file(tmp_path):
    def broken():
        yield ops.phase("a")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        ops.write(tmp_path / "x.ops", broken())
    assert list(tmp_path.iterdir()) == []


def test_a_path_with_nul_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        ops.unlink("a\0b")


# Encoded by hand from the table of vmimages/core/README.md; 1282089600 is 0x4C6B2280, in LEB128 80 C5 AC E3 04.
OPERATIONS = [
    (ops.mkdir("d", 0o775), b"\x10\x01d\0\xfd\x03", ["mkdir", "d", 0o775]),
    (ops.unlink("f"), b"\x12\x01f\0", ["unlink", "f"]),
    (ops.rmdir("d"), b"\x13\x01d\0", ["rmdir", "d"]),
    (ops.chdir(".."), b"\x14\x02..\0", ["chdir", ".."]),
    (ops.sync(), b"\x15", ["sync"]),
    (
        ops.open(63, "f", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        b"\x16\x3f\x01f\0\xc1\x08\x80\x03",
        ["open", 63, "f", 0o2101, 0o600],
    ),
    (ops.close(1), b"\x17\x01", ["close", 1]),
    (ops.write_data(1, 2, 300, 3072), b"\x18\x01\x02\xac\x02\x80\x18", ["write", 1, 2, 300, 3072]),
    (ops.read_data(1, 128), b"\x19\x01\x80\x01", ["read", 1, 128]),
    (ops.fsync(0), b"\x1a\x00", ["fsync", 0]),
    (ops.fdatasync(0), b"\x1b\x00", ["fdatasync", 0]),
    (ops.sync_file_range(1, 2, 3, 7), b"\x1c\x01\x02\x03\x07", ["sync-file-range", 1, 2, 3, 7]),
    (ops.fallocate(1, 0, 2, 3), b"\x1d\x01\x00\x02\x03", ["fallocate", 1, 0, 2, 3]),
    (ops.ftruncate(1, 127), b"\x1e\x01\x7f", ["ftruncate", 1, 127]),
    (ops.fchmod(1, 0o644), b"\x1f\x01\xa4\x03", ["fchmod", 1, 0o644]),
    (ops.fchown(1, 2, 3), b"\x20\x01\x02\x03", ["fchown", 1, 2, 3]),
    (ops.futimens(1, 1282089600), b"\x21\x01\x80\xc5\xac\xe3\x04", ["futimens", 1, 1282089600]),
    (ops.rename("a", "b"), b"\x22\x01a\0\x01b\0", ["rename", "a", "b"]),
    (ops.link("a", "b"), b"\x23\x01a\0\x01b\0", ["link", "a", "b"]),
    (ops.symlink("a", "b"), b"\x24\x01a\0\x01b\0", ["symlink", "a", "b"]),
    (ops.truncate("f", 2**63 - 1), b"\x25\x01f\0" + b"\xff" * 8 + b"\x7f", ["truncate", "f", 2**63 - 1]),
    (ops.stat("f"), b"\x26\x01f\0", ["stat", "f"]),
    (ops.chmod("f", 0o4755), b"\x27\x01f\0\xed\x13", ["chmod", "f", 0o4755]),
    (ops.utimes("f", 1), b"\x28\x01f\0\x01", ["utimes", "f", 1]),
    (ops.drop_caches(), b"\x30", ["drop-caches"]),
    (ops.remount(), b"\x31", ["remount"]),
    (ops.walk("find", ".", "d"), b"\x40\x04find\0\x01.\0\x01d\0", ["walk", "find", ".", "d"]),
    (ops.copy("cp", "a", "b"), b"\x41\x02cp\0\x01a\0\x01b\0", ["copy", "cp", "a", "b"]),
    (ops.remove("rm", "a"), b"\x42\x02rm\0\x01a\0", ["remove", "rm", "a"]),
    (ops.verify("/m"), b"\x50\x02/m\0", ["verify", "/m"]),
    (
        ops.command(["ls", ""], "d", {"A": "1", "B": ""}),
        b"\x60\x01d\0\x02\x02ls\0\x00\0\x02\x03A=1\0\x02B=\0",
        ["command", "d", ["ls", ""], ["A=1", "B="]],
    ),
    (ops.command(["ls"]), b"\x60\x01.\0\x01\x02ls\0\x00", ["command", ".", ["ls"], []]),
    (ops.fault("spin"), b"\x7f\x04spin\0", ["fault", "spin"]),
    (ops.stat("\udcff"), b"\x26\x01\xff\0", ["stat", "\udcff"]),
    (ops.write_data(0, 3, 2**64 - 1, 0), b"\x18\x00\x03" + b"\xff" * 9 + b"\x01\x00", ["write", 0, 3, 2**64 - 1, 0]),
]


@pytest.mark.parametrize(("encoded", "wanted", "told"), OPERATIONS)
def test_operations_by_hand(encoded, wanted, told):
    assert encoded == wanted
    assert [[name, *arguments] for name, arguments in ops.read(HEADER + encoded + b"\x03")] == [told, ["end"]]


def test_every_operation_was_tried():
    assert {told[0] for _, _, told in OPERATIONS} | {"phase", "phase-end", "end", "create"} == set(ops.TABLE)


def test_the_core_has_the_same_table():
    core = Path(__file__).resolve().parents[1] / "vmimages" / "core"
    codes = {name: int(code, 16) for name, code in re.findall(r"(OP_\w+) = (0x\w\w),", (core / "op.h").read_text())}
    rows = re.findall(r'\[(OP_\w+)\] = \{ "([a-z-]+)", "([a-z]*)",', (core / "op.c").read_text())
    for code, name, kinds in rows:
        # The core tells kinds of strings and of numbers apart.
        assert ops.TABLE[name] == (codes[code], re.sub("[^sl]", "i", kinds.replace("t", "s"))), name
    assert {name for _, name, _ in rows} == set(ops.TABLE)


@pytest.mark.parametrize(
    "encode",
    [
        lambda: ops.close(64),
        lambda: ops.close(-1),
        lambda: ops.unlink(""),
        lambda: ops.unlink("a" * 4096),
        lambda: ops.truncate("a", -1),
        lambda: ops.truncate("a", 2**64),
        lambda: ops.command(["a" * 4000] * 17),
        lambda: ops.command(["a\0"]),
    ],
)
def test_what_the_core_would_refuse_is_not_encoded(encode):
    with pytest.raises(ValueError, match=r"a stream|open file"):
        encode()


def test_a_list_of_64_kib_is_encoded_and_read():
    argv = ["a" * 4000] * 16 + ["b" * 1400]
    assert next(ops.read(HEADER + ops.command(argv) + b"\x03")) == ("command", [".", argv, []])


@pytest.mark.parametrize(
    "data",
    [
        b"\x12\x00\0\x03",  # an empty path
        b"\x12\x80\x20" + b"a" * 4096 + b"\0\x03",  # too long a path
        b"\x17" + b"\xff" * 9 + b"\x02\x03",  # a number of 65 bits
        b"\x17" + b"\xff" * 10 + b"\x01\x03",  # a number without end
        b"\x60\x01.\0\x11" + (b"\xa0\x1f" + b"a" * 4000 + b"\0") * 17 + b"\x00\x03",  # too long a list
        b"\x60\x01.\0" + b"\xff" * 9 + b"\x01" + b"\x01a\0\x03",  # more strings than there are
    ],
)
def test_limits_hold_for_the_reader(data):
    with pytest.raises(UserError, match=r"is damaged at byte 12$"):
        list(ops.read(HEADER + data))


def test_a_file_is_read_in_pieces(tmp_path, monkeypatch):
    def operations():
        for number in range(3000):
            yield ops.create(f"{number}" * (number % 7 + 1), 0o644)
            yield ops.command(["x" * (number % 300)], environment={"N": str(number)})

    path = tmp_path / "x.ops"
    ops.write(path, operations())
    whole = list(ops.read(path.read_bytes()))
    assert len(whole) == 6001
    monkeypatch.setattr(ops, "_CHUNK_BYTES", 7)
    pieces = ops.read(path)
    assert inspect.isgenerator(pieces)
    assert list(pieces) == whole


def test_create_unlink_is_the_published_program(tmp_path):
    # Read off the program in the message of 18 August 2010, for N = 2.
    path = tmp_path / "x.ops"
    ops.write(path, workload.ops("create-unlink", workload.parameters("create-unlink", {"nfiles": 2})))
    assert [(name, *arguments) for name, arguments in ops.read(path.read_bytes())] == [
        ("mkdir", "tst_dir", 0o775),
        ("chdir", "tst_dir"),
        ("phase", "create"),
        ("create", "0", 0o555),
        ("create", "1", 0o555),
        ("phase-end",),
        ("phase", "delete"),
        ("unlink", "0"),
        ("unlink", "1"),
        ("phase-end",),
        ("chdir", ".."),
        ("rmdir", "tst_dir"),
        ("end",),
    ]
