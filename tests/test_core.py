"""The core: its own tests, and its replay as an ordinary program, against what another program sees."""

import shutil
import subprocess
from pathlib import Path

import pytest

from fsexp import ops
from fsexp.vm import outcome, record

SOURCE = Path(__file__).resolve().parents[1] / "vmimages" / "core"
CORE = SOURCE / "build" / "core"


def test_its_own_tests(tmp_path):
    # In a copy: a build beside another pytest's must not meet it.
    copy = shutil.copytree(SOURCE, tmp_path / "core", ignore=shutil.ignore_patterns("build"))
    done = subprocess.run(["make", "-C", copy, "test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" checks, 0 failed") == len(list(copy.glob("tests/test_*.c")))


def test_the_same_bytes_from_another_folder(tmp_path):
    copy = shutil.copytree(SOURCE, tmp_path / "elsewhere", ignore=shutil.ignore_patterns("build"))
    subprocess.run(["make", "-s", "-C", copy], check=True)
    assert (copy / "build" / "core").read_bytes() == CORE.read_bytes()


def native(tmp_path, operations, cut_bytes=0):
    folder, stream, records = tmp_path / "folder", tmp_path / "ops", tmp_path / "records"
    folder.mkdir()
    ops.write(stream, operations)
    stream.write_bytes(stream.read_bytes()[: -cut_bytes or None])
    subprocess.run([CORE, "native", folder, stream, records], check=False)
    return folder, record.parse(records.read_bytes())


def test_replay_leaves_what_the_stream_says(tmp_path):
    folder, stream = native(
        tmp_path,
        [
            ops.mkdir("a", 0o755),
            ops.phase("p"),
            ops.create("a/kept", 0o640),
            ops.create("a/gone", 0o600),
            ops.unlink("a/gone"),
            ops.phase_end(),
            ops.chdir("a"),
            ops.mkdir("b", 0o700),
        ],
    )
    assert stream.whole
    assert [(one["name"], one["operations"], one["errors"]) for one in stream.of("phase")] == [("p", 3, 0)]
    found = subprocess.run(
        ["find", ".", "-mindepth", "1", "-printf", "%P %y %m %s\n"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = sorted(line if " d " not in line else line.rsplit(" ", 1)[0] for line in found.stdout.splitlines())
    assert lines == ["a d 755", "a/b d 700", "a/kept f 640 0"]


@pytest.mark.parametrize(
    ("operation", "name", "error", "path"),
    [
        (ops.unlink("none"), "unlink", "ENOENT", "none"),
        (ops.mkdir("there", 0o755), "mkdir", "EEXIST", "there"),
        (ops.rmdir("full"), "rmdir", "ENOTEMPTY", "full"),
        (ops.chdir("full/file"), "chdir", "ENOTDIR", "full/file"),
    ],
)
def test_a_failed_call_is_told(tmp_path, operation, name, error, path):
    before = [ops.mkdir("there", 0o755), ops.mkdir("full", 0o755), ops.create("full/file", 0o644)]
    _, stream = native(tmp_path, [*before, ops.phase("p"), operation, ops.phase_end()])
    assert stream.whole
    [fail] = stream.of("fail")
    assert (fail["operation"], fail["error"], fail["path"], fail["phase"], fail["index"]) == (name, error, path, "p", 4)
    assert stream.records[-1]["status"] == "failed"
    assert stream.of("phase") == []


@pytest.mark.parametrize("cut_bytes", [1, 2, 5, 25])
def test_a_stream_that_was_cut_is_no_finding(tmp_path, cut_bytes):
    operations = [ops.phase("p"), ops.mkdir("there", 0o755), ops.phase_end()]
    folder, stream = native(tmp_path, operations, cut_bytes)
    word, reason = outcome.decide(b"", stream, outcome.Ended("power-off"))
    assert word == "infrastructure", reason
    assert reason.startswith("check ")
    assert not list(folder.iterdir())
