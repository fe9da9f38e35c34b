"""The stream of operations."""

import hashlib

import pytest

from fsexp import ops, workload
from fsexp.errors import UserError

# By hand from the layout: 300 is 0xAC 0x02 in LEB128; 0o555 is 365 = 0xED 0x02.
BYTES = b"FSEXPOPS\x01\0\0\0" + b"\x01\x06create\0" + b"\x11\x010\0\xed\x02" + b"\x02" + b"\x03"


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


@pytest.mark.parametrize("name", workload.NAMES)
def test_phases_are_those_of_the_stream(name, tmp_path):
    given = {"create-unlink": {}, "fault": {"kind": "spin"}}[name]
    parameters = workload.parameters(name, given)
    ops.write(tmp_path / "x", workload.ops(name, parameters))
    stream = list(ops.read((tmp_path / "x").read_bytes()))
    assert [arguments[0] for op, arguments in stream if op == "phase"] == workload.phases(name, parameters)
