"""The core: its own tests, and its replay as an ordinary program, against what another program sees."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fsexp import ops, pattern
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


def seen(folder, *names):
    """What Python sees: mode, size, links, times in whole seconds."""
    found = {}
    for name in names:
        about = (folder / name).lstat()
        found[name] = (oct(about.st_mode), about.st_size, about.st_nlink, int(about.st_atime), int(about.st_mtime))
    return found


def test_files_are_written_and_read(tmp_path):
    length = 2 * 2**20 + 17  # more than two calls
    folder, stream = native(
        tmp_path,
        [
            ops.phase("write"),
            *(
                piece
                for slot, chosen in enumerate(pattern.Pattern)
                for piece in (
                    ops.open(slot, chosen.name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600),
                    ops.write_data(slot, chosen, 5 + slot, length),
                    ops.write_data(slot, chosen, 16383, 100),
                )
            ),
            ops.phase_end(),
            *(ops.close(slot) for slot in range(4)),
            ops.open(9, "TEXT", os.O_WRONLY | os.O_APPEND),
            ops.write_data(9, pattern.Pattern.ONES, 0, 3),
            ops.close(9),
            ops.phase("read"),
            ops.open(63, "TEXT", os.O_RDONLY),
            ops.read_data(63, 1000),
            ops.read_data(63, 10 * length),
            ops.read_data(63, 5),
            ops.close(63),
            ops.phase_end(),
        ],
    )
    assert stream.whole, stream.of("fail")
    for slot, chosen in enumerate(pattern.Pattern):
        wanted = pattern.content(chosen, 5 + slot, length) + pattern.content(chosen, 16383, 100)
        assert (folder / chosen.name).read_bytes() == wanted + (b"111" if chosen.name == "TEXT" else b"")
    assert [(one["name"], one["operations"], one["bytes"]) for one in stream.of("phase")] == [
        ("write", 12, 4 * (length + 100)),
        ("read", 5, length + 103),
    ]
    assert {(one["phase"], one["operation"]): (one["count"], one["bytes"]) for one in stream.of("operations")} == {
        ("write", "open"): (4, 0),
        ("write", "write"): (8, 4 * (length + 100)),
        ("read", "open"): (1, 0),
        ("read", "read"): (3, length + 103),
        ("read", "close"): (1, 0),
    }


def test_files_are_changed(tmp_path):
    new = os.O_WRONLY | os.O_CREAT
    folder, stream = native(
        tmp_path,
        [
            ops.open(0, "open", new, 0o600),
            ops.write_data(0, pattern.Pattern.ONES, 0, 100),
            ops.sync_file_range(0, 0, 100, 7),
            ops.fdatasync(0),
            ops.fsync(0),
            ops.ftruncate(0, 70),
            ops.fchmod(0, 0o751),
            ops.fchown(0, os.getuid(), os.getgid()),
            ops.futimens(0, 1282089600),
            ops.close(0),
            ops.create("made", 0o644),
            ops.truncate("made", 5000),
            ops.chmod("made", 0o4711),
            ops.utimes("made", 1000000000),
            ops.symlink("nowhere/at all", "symbolic"),
            ops.utimes("symbolic", 1234567890),
            ops.link("made", "linked"),
            ops.create("old", 0o640),
            ops.rename("old", "new"),
            ops.stat("symbolic"),
            ops.drop_caches(),
            ops.mkdir("deep", 0o755),
            ops.chdir("deep"),
            ops.remount(),
            ops.create("top", 0o600),
        ],
    )
    assert stream.whole, stream.of("fail")
    assert stream.records[-1]["status"] == "ok"
    found = seen(folder, "open", "made", "linked", "symbolic")
    assert found["open"] == (oct(0o100751), 70, 1, 1282089600, 1282089600)
    assert found["made"] == found["linked"] == (oct(0o104711), 5000, 2, 1000000000, 1000000000)
    assert found["symbolic"][3:] == (1234567890, 1234567890)
    assert (folder / "symbolic").readlink() == Path("nowhere/at all")
    assert sorted(path.name for path in folder.iterdir()) == [
        "deep", "linked", "made", "new", "open", "symbolic", "top",
    ]  # fmt: skip
    # Nothing of the host is unmounted, and no cache of it dropped: that is said.
    assert [(one["operation"], one["dropped"]) for one in stream.of("caches")] == [("drop-caches", 0), ("remount", 0)]


def test_space_is_reserved_or_passed_over(tmp_path):
    folder, stream = native(
        tmp_path,
        [
            ops.open(0, "file", os.O_WRONLY | os.O_CREAT),
            ops.phase("p"),
            ops.fallocate(0, 0, 0, 10000),
            ops.fallocate(0, 1, 10000, 10000),
            ops.phase_end(),
            ops.close(0),
        ],
    )
    [one] = stream.of("operations")
    [phase] = stream.of("phase")
    assert one["count"] == phase["operations"] == 2
    if one["errors"]:  # a filesystem that does not do it
        assert one["errors"] == phase["errors"] == 2
        assert (folder / "file").stat().st_size == 0
    else:
        about = (folder / "file").stat()
        assert (about.st_size, about.st_blocks * 512 >= 20000) == (10000, True)


def test_times_add_up_to_the_phase(tmp_path):
    _, stream = native(
        tmp_path,
        [
            ops.phase("p"),
            *(ops.create(str(name), 0o644) for name in range(300)),
            ops.command(["sleep", "0.2"]),
            *(ops.unlink(str(name)) for name in range(200)),
            ops.phase_end(),
        ],
    )
    [phase] = stream.of("phase")
    operations = {one["operation"]: one for one in stream.of("operations")}
    assert {name: one["count"] for name, one in operations.items()} == {"create": 300, "unlink": 200, "command": 1}
    total_ns = sum(one["total_ns"] for one in operations.values())
    assert 0.99 * phase["elapsed_ns"] < total_ns <= phase["elapsed_ns"]
    slept = operations["command"]
    assert 200e6 <= slept["total_ns"] == slept["max_ns"] == slept["p50_ns"] == slept["p99_ns"]
    for one in operations.values():
        assert sum(count for _, count in one["buckets"]) == one["count"]
        assert sum(lower * count for lower, count in one["buckets"]) <= one["total_ns"]
        assert one["total_ns"] <= sum((lower * 9 / 8 + 1) * count for lower, count in one["buckets"])
        assert one["p50_ns"] <= one["p90_ns"] <= one["p99_ns"] <= one["max_ns"] <= one["total_ns"]
        assert one["buckets"] == sorted(one["buckets"])


def test_the_kernels_counters(tmp_path):
    busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    _, stream = native(tmp_path, [ops.phase("p"), ops.command(["sh", "-c", busy]), ops.phase_end()])
    [phase] = stream.of("phase")
    assert list(phase["stat"]) == ["user", "nice", "system", "idle", "iowait", "irq", "softirq"]
    assert phase["stat"]["user"] > 0
    assert phase["vmstat"]["pgfault"] > 0
    assert phase["disks"] == {}  # none is under test
    memory = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    slab = int(memory["Slab"].split()[0]) * 1024
    assert 0.5 * slab < phase["memory"]["Slab"] < 2 * slab


def test_programs_of_a_phase_are_told_after_it(tmp_path):
    folder, stream = native(
        tmp_path,
        [
            ops.mkdir("in", 0o755),
            ops.phase("p"),
            ops.command(["sh", "-c", "pwd; echo $WORD; touch made", ""], "in", {"WORD": "a b", "HOME": "/x"}),
            ops.command(["echo", "é"]),
            ops.phase_end(),
            ops.command(["true"]),
        ],
    )
    assert stream.whole
    assert [record["type"] for record in stream.records] == [
        "hello", "space", "phase", "operations", "command", "command", "space", "command", "end",
    ]  # fmt: skip
    assert [(one["phase"], one["argv"][0], one["status"], one["output"]) for one in stream.of("command")] == [
        ("p", "sh", 0, f"{folder}/in\na b\n"),
        ("p", "echo", 0, "é\n"),
        ("", "true", 0, ""),
    ]
    assert stream.of("command")[0]["argv"] == ["sh", "-c", "pwd; echo $WORD; touch made", ""]
    assert (folder / "in" / "made").exists()


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["no-such-program", "x"], "execve 'no-such-program': ENOENT (errno 2) in phase p, operation 2: "),
        (["sh", "-c", "echo why; exit 3"], "status 'sh' in phase p, operation 2: it ended with status 3"),
    ],
)
def test_a_program_that_fails_is_named(tmp_path, argv, reason):
    _, stream = native(tmp_path, [ops.phase("p"), ops.command(["echo", "before"]), ops.command(argv), ops.phase_end()])
    assert stream.whole
    word, said = outcome.decide(b"", stream, outcome.Ended("power-off"))
    assert word == "workload-failed"
    assert said.startswith(reason)
    assert stream.of("phase") == []
    outputs = [one["output"] for one in stream.of("command")]
    assert outputs == (["before\n", "why\n"] if argv[0] == "sh" else ["before\n"])


def test_a_failure_at_an_open_file_names_it(tmp_path):
    operations = [ops.open(3, "file", os.O_RDONLY | os.O_CREAT), ops.write_data(3, 0, 0, 1), ops.close(3)]
    _, stream = native(tmp_path, operations)
    [fail] = stream.of("fail")
    assert (fail["operation"], fail["path"], fail["error"], fail["index"]) == ("write", "file", "EBADF", 1)


def test_a_failure_with_two_names_tells_both(tmp_path):
    _, stream = native(tmp_path, [ops.rename("none", "other")])
    [fail] = stream.of("fail")
    assert (fail["operation"], fail["path"], fail["error"]) == ("rename", "none", "ENOENT")
    assert fail["message"] == "rename none to other failed: No such file or directory"


def test_a_failure_after_a_tree_is_told_at_its_own_path(tmp_path):
    made = [ops.mkdir("d", 0o755), ops.create("d/f", 0o644), ops.walk("findutils-4.9", "d", "f")]
    _, stream = native(tmp_path, [*made, ops.unlink("none")])
    [fail] = stream.of("fail")
    assert (fail["operation"], fail["path"], fail["index"]) == ("unlink", "none", 3)


# Arguments that no encoder gives: the core alone must refuse them, before it does anything.
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (b"\x17\x40", "a number is out of range"),
        (b"\x17\x00", "a slot is used that is not open"),
        (b"\x16\x00\x01f\x00\x00\x00", "the stream ends while a file is open"),
        (b"\x16\x00\x01f\x00\x00\x00\x18\x00\x04\x00\x01\x17\x00", "a number is out of range"),
        (b"\x60\x01.\x00\x00\x00", "a command has no program"),
        (b"\x01\x01p\x00\x31\x02", "something is inside a phase that must not be"),
        (b"\x01\x01p\x00\x50\x01m\x00\x02", "something is inside a phase that must not be"),
        (b"\x40\x04find\x00\x01.\x00\x01f\x00", "there is no such program for this"),
        (b"\x40\x0dfindutils-4.9\x00\x01.\x00\x01x\x00", "a type is not d or f"),
    ],
)
def test_a_stream_that_makes_no_sense_is_refused(tmp_path, damage, said):
    folder, stream = native(tmp_path, [ops.mkdir("first", 0o755), damage])
    [fail] = stream.of("fail")
    assert fail["operation"] == "check"
    assert fail["message"].startswith(said)
    assert not list(folder.iterdir())
