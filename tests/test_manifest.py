"""Manifests: what streams must leave against what they do leave, and the core's verdict on both."""

import os
import subprocess
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fsexp import manifest, ops, pattern, tree
from fsexp.errors import UserError
from fsexp.vm import outcome, record

CORE = Path(__file__).resolve().parents[1] / "vmimages" / "core" / "build" / "core"


def native(scratch, operations):
    folder = Path(scratch, "folder")
    folder.mkdir()
    ops.write(Path(scratch, "ops"), operations)
    subprocess.run([CORE, "native", folder, Path(scratch, "ops"), Path(scratch, "records")], check=False)
    return folder, record.parse(Path(scratch, "records").read_bytes())


def decoded(operation):
    stream = ops.MAGIC + ops.VERSION.to_bytes(4, "little") + operation + b"\3"
    return next(ops.read(stream))


def modelled(*operations):
    return tree.Tree().apply_all(map(decoded, operations))


def _text(data):
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in data)


def seen(top):
    """The manifest of what is there, as Python's own calls see it."""
    found = []

    def visit(folder, prefix):
        for name in sorted(map(os.fsencode, (path.name for path in Path(folder).iterdir()))):
            path, shown = Path(folder, os.fsdecode(name)), prefix + _text(name)
            about = path.lstat()
            mode = f"{about.st_mode & 0o7777:04o}"
            if path.is_symlink():
                target = os.fsencode(path.readlink())
                found.append(f"{shown}\tl\t0777\t{len(target)}\t{_text(target)}\n")
            elif path.is_dir():
                found.append(f"{shown}\td\t{mode}\t0\t-\n")
                visit(path, shown + "/")
            else:
                data = path.read_bytes()
                found.append(f"{shown}\tf\t{mode}\t{len(data)}\t{zlib.crc32(data):08x}\n")

    visit(top, "")
    return [f"fsexp-manifest\t1\t{len(found)}\n", *found]


# Few names, so that they meet; of every kind of byte, so that their order and escapes matter.
NAMES = st.sampled_from(["a", "b", "c d", "a.b", "\\", "\udcff", "ä"])
PATHS = st.lists(NAMES | st.just(".."), min_size=1, max_size=3).map("/".join)
SLOTS = st.integers(0, 2)
FILE_MODES = st.sampled_from([0o600, 0o644, 0o755, 0o711])
DIRECTORY_MODES = st.sampled_from([0o700, 0o755, 0o1777])
FLAGS = st.builds(
    lambda access, more: access | sum(more),
    st.sampled_from([os.O_RDONLY, os.O_WRONLY, os.O_RDWR]),
    st.sets(st.sampled_from([os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND])),
)
LENGTHS = st.sampled_from([1, 63, 64, 4096, 70000, 2**20, 2**20 + 5])
OPERATIONS = st.one_of(
    st.builds(ops.mkdir, PATHS, DIRECTORY_MODES),
    st.builds(ops.create, PATHS, FILE_MODES),
    st.builds(ops.open, SLOTS, PATHS, FLAGS, FILE_MODES),
    st.builds(ops.write_data, SLOTS, st.integers(0, 3), st.integers(0, 2**64 - 1), LENGTHS),
    st.builds(ops.read_data, SLOTS, LENGTHS),
    st.builds(ops.ftruncate, SLOTS, LENGTHS),
    st.builds(ops.fallocate, SLOTS, st.integers(0, 1), LENGTHS, LENGTHS),
    st.builds(ops.fchmod, SLOTS, FILE_MODES),
    st.builds(ops.close, SLOTS),
    st.builds(ops.truncate, PATHS, LENGTHS),
    st.builds(ops.unlink, PATHS),
    st.builds(ops.rmdir, PATHS),
    st.builds(ops.rename, PATHS, PATHS),
    st.builds(ops.link, PATHS, PATHS),
    st.builds(ops.symlink, PATHS, PATHS),
    st.builds(ops.chmod, PATHS, st.just(0o755)),
    st.builds(ops.chdir, PATHS),
    st.builds(ops.stat, PATHS),
    st.builds(ops.copy, st.sampled_from(["coreutils-8.12", "coreutils-9.1"]), PATHS, PATHS),
    st.builds(ops.remove, st.sampled_from(["coreutils-8.12", "coreutils-9.1"]), PATHS),
)


def possible(operations):
    """Those of the operations that the model takes, one after the other, the first that must fail, and the tree."""
    model, taken, fails, used = tree.Tree(), [], None, set()
    for operation in operations:
        name, arguments = decoded(operation)
        kinds = ops.TABLE[name][1]
        if kinds[:1] == "i" and (arguments[0] in used) == (name == "open"):
            continue  # a stream may not do that at all
        try:
            model.apply(name, arguments)
        except tree.Untold:
            continue
        except tree.Impossible:
            fails = fails or (operation, list(taken), set(used))
            continue
        taken.append(operation)
        if name in ("open", "close"):
            used ^= {arguments[0]}
    for slot in used:
        taken.append(ops.close(slot))
        model.apply("close", [slot])
    return taken, fails, model


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(OPERATIONS, max_size=40))
def test_the_model_is_what_the_core_leaves(operations):
    taken, fails, model = possible(operations)
    try:
        wanted = list(manifest.lines(model))
    except tree.Untold:
        return
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "manifest").write_text("".join(wanted))
        folder, stream = native(scratch, [*taken, ops.verify(f"{scratch}/manifest")])
        assert stream.of("fail") == []
        assert seen(folder) == wanted
        [verify] = stream.of("verify")
        assert verify["entries"] == len(wanted) - 1
    if fails is None:
        return
    operation, before, used = fails
    name, arguments = decoded(operation)
    if name == "open":  # a stream closes what it opens, or else is refused
        used = used | {arguments[0]}
    with tempfile.TemporaryDirectory() as scratch:
        _, stream = native(scratch, [*before, operation, *map(ops.close, used)])
        [fail] = stream.of("fail")
        assert fail["index"] == len(before), fail


# By hand; the CRC-32 of "111111111" is that of zlib.
BY_HAND = [
    ops.mkdir("a", 0o755),
    ops.mkdir("a.c", 0o700),
    ops.create("a.c/lost+found", 0o644),
    ops.open(0, "z", os.O_WRONLY | os.O_CREAT, 0o600),
    ops.write_data(0, pattern.Pattern.ONES, 0, 9),
    ops.fchmod(0, 0o640),
    ops.close(0),
    ops.create("a b", 0o644),
    ops.symlink("../\tc", "a/l"),
    ops.link("z", "a/\1\\\udcff b"),
]
LINES = (
    "fsexp-manifest\t1\t7\n"
    "a\td\t0755\t0\t-\n"
    f"a/\\x01\\x5c\\xff b\tf\t0640\t9\t{zlib.crc32(b'1' * 9):08x}\n"
    "a/l\tl\t0777\t5\t../\\x09c\n"
    "a b\tf\t0644\t0\t00000000\n"
    "a.c\td\t0700\t0\t-\n"
    "a.c/lost+found\tf\t0644\t0\t00000000\n"
    f"z\tf\t0640\t9\t{zlib.crc32(b'1' * 9):08x}\n"
)


def test_a_manifest_by_hand(tmp_path):
    ops.write(tmp_path / "ops", BY_HAND)
    digest = manifest.write(tmp_path / "manifest", ops.read(tmp_path / "ops"))
    assert (tmp_path / "manifest").read_text() == LINES
    assert len(digest) == 64


@pytest.mark.parametrize(
    ("operation", "path", "what"),
    [
        (ops.unlink("a b"), "a b", "missing"),
        (ops.create("a/k", 0o644), "a/k", "not expected"),
        (ops.chmod("a.c", 0o755), "a.c", "mode"),
        (ops.truncate("z", 8), "a/\1\\\ufffd b", "size"),
    ],
)
def test_what_is_not_so_is_corrupt(tmp_path, operation, path, what):
    (tmp_path / "manifest").write_text(LINES)
    _, stream = native(tmp_path, [*BY_HAND, operation, ops.verify(str(tmp_path / "manifest"))])
    [fail] = stream.of("fail")
    assert (fail["step"], fail["operation"], fail["path"], fail["phase"]) == ("verify", what, path, "")
    word, _ = outcome.decide(b"", stream, outcome.Ended("power-off"))
    assert word == "corrupt"


def test_a_changed_byte_is_corrupt(tmp_path):
    operations = [ops.open(0, "f", os.O_WRONLY | os.O_CREAT), ops.write_data(0, 2, 5, 3_000_000), ops.close(0)]
    manifest.write(tmp_path / "manifest", map(decoded, operations))
    change = [ops.open(0, "f", os.O_WRONLY), ops.write_data(0, 2, 6, 1), ops.close(0)]
    _, stream = native(tmp_path, [*operations, *change, ops.verify(str(tmp_path / "manifest"))])
    [fail] = stream.of("fail")
    assert (fail["operation"], fail["path"]) == ("content", "f")


@pytest.mark.skipif(os.geteuid() != 0, reason="these bits depend on who runs it, in a guest root")
def test_special_bits(tmp_path):
    operations = [
        ops.mkdir("d", 0o755),
        ops.chmod("d", 0o2775),
        ops.mkdir("d/inherits", 0o755),
        ops.mkdir("ignored", 0o6755),
        ops.create("d/u", 0o4755),
        ops.create("d/g", 0o2644),
        ops.create("d/gx", 0o6755),
        ops.open(0, "d/gx", os.O_WRONLY),
        ops.fchown(0, 12, 34),
        ops.close(0),
        ops.open(0, "d/g", os.O_WRONLY),
        ops.fchown(0, 12, 34),
        ops.close(0),
        ops.open(0, "d/u", os.O_WRONLY),
        ops.write_data(0, 1, 2, 3),
        ops.close(0),
        ops.copy("coreutils-9.1", "d", "e"),
        ops.copy("coreutils-8.12", "d", "f"),
    ]
    folder, stream = native(tmp_path, operations)
    assert stream.of("fail") == []
    assert seen(folder) == list(manifest.lines(modelled(*operations)))


OPENED = ops.open(0, "f", os.O_RDWR | os.O_CREAT)
APPENDING = ops.open(0, "f", os.O_WRONLY | os.O_CREAT | os.O_APPEND)


@pytest.mark.parametrize(
    ("operations", "said"),
    [
        ([ops.command(["true"])], "what command leaves can't be told from the stream (operation 0, command)"),
        ([ops.create("/x", 0o644)], "where '/x' is can't be told"),
        ([ops.create("../x", 0o644)], "'../x' leads out of the top directory"),
        ([OPENED, ops.fallocate(0, 3, 0, 5)], "what fallocate does to a file's content can't be told"),
        ([OPENED, ops.fallocate(0, 0, 0, 5)], "the size of 'f' is not known after fallocate"),
        ([APPENDING, ops.fallocate(0, 0, 0, 5), ops.write_data(0, 0, 0, 1)], "a file's end is not known"),
        ([ops.unlink("x")], "there is nothing at 'x' that could be taken away (operation 0, unlink)"),
        ([ops.mkdir("x", 0o755), ops.create("x/y/z", 0o644)], "'x/y/z': there is no directory 'y'"),
    ],
)
def test_what_a_stream_does_not_tell_is_said(operations, said):
    with pytest.raises(UserError) as caught:
        list(manifest.lines(modelled(*operations)))
    assert said in str(caught.value)


def test_fallocate_of_what_is_then_written_is_known():
    model = modelled(OPENED, ops.fallocate(0, 0, 0, 5), ops.write_data(0, 3, 0, 5))
    assert list(manifest.lines(model))[1:] == [f"f\tf\t0644\t5\t{zlib.crc32(b'11111'):08x}\n"]


def test_a_tree_deeper_than_python_recurses():
    path = "/".join("d" * 2000)
    model = modelled(*(ops.mkdir(path[: 2 * level + 1], 0o755) for level in range(2000)))
    model = model.apply_all([decoded(ops.copy("coreutils-9.1", "d", "e")), decoded(ops.remove("coreutils-9.1", "d"))])
    *_, last = manifest.lines(model)
    assert last.startswith("e/d/d/d/") and last.count("/") == 1999
