"""The core's walks, copies and removals of trees against the programs that they imitate, as strace shows both.

The programs of this machine (findutils 4.9, coreutils 9.1 on Debian 12) are the reference: the same calls, on the same
files, in the same order. For those of 2009 and 2011 it is what their sources say (gnulib's fts.c of December 2007,
coreutils 8.12).
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fsexp import ops
from fsexp.vm import record

CORE = Path(__file__).resolve().parents[1] / "vmimages" / "core" / "build" / "core"

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

# The big directory: fts sorts above 10,000 entries.
BIG = 10_001


def _version(program, wanted):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    if not done.stdout.splitlines()[0].endswith(wanted):
        pytest.skip(f"the {program} of this machine is {done.stdout.splitlines()[0]}, and not {wanted}")


def make_tree(top):
    """A tree with what makes a difference: order, depth beyond gnulib's ring of descriptors, names, modes, sizes."""
    top.mkdir()
    for number in range(40):
        (top / f"file-{number * 7 % 40}").write_bytes(b"x" * number * 1000)
    deep = top
    for number in range(9):
        deep = deep / f"deep-{number}"
        deep.mkdir()
        (deep / "before").write_bytes(b"b")
        (deep / "side").mkdir()
        (deep / "side" / "within").write_bytes(b"")
    (top / "empty").mkdir()
    (top / "large").write_bytes(os.urandom(300_000))
    (top / "link").symlink_to("large")
    (top / "dangling").symlink_to("no/such/place")
    os.link(top / "large", top / "deep-0" / "other name of large")
    os.link(top / "deep-0" / "before", top / "other name of before")
    (top / "shared").mkdir(mode=0o775)
    (top / "shared").chmod(0o2775)
    (top / "executable").write_bytes(b"#!\n")
    (top / "executable").chmod(0o755)
    if os.geteuid() == 0:  # cp without privileges makes what is read-only writable for a while
        (top / "read-only").write_bytes(b"r")
        (top / "read-only").chmod(0o444)
        (top / "another's").write_bytes(b"o")
        os.chown(top / "another's", 1234, 5678)
        (top / "set-user").write_bytes(b"s")
        (top / "set-user").chmod(0o4755)
    try:
        os.setxattr(top / "large", "user.note", b"value")
    except OSError:
        pass  # not every filesystem has them
    for folder, _, names in os.walk(top, topdown=False):
        for name in names:
            os.utime(Path(folder, name), ns=(10**18 + 1, 10**18 + 23456789), follow_symlinks=False)
        os.utime(folder, ns=(10**18 + 1, 10**18 + 987654321))


def make_big(top):
    """One directory above the threshold; one entry in a hundred is a directory. No order is that of the names."""
    top.mkdir()
    for number in sorted(range(BIG), key=lambda number: number * 7919 % BIG):
        path = top / str(number)
        if number % 100 == 0:
            path.mkdir()
        else:
            path.touch()


_CALL = re.compile(r"(\w+)\((.*)\) += (.*)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')

# What strace calls it -> what it is. What is not here does not reach a filesystem.
_KINDS = {
    **dict.fromkeys(["newfstatat", "lstat", "stat", "fstat"], "stat"),
    **dict.fromkeys(["openat", "open"], "open"),
    **dict.fromkeys(["unlinkat", "unlink", "rmdir"], "remove"),
    **dict.fromkeys(["mkdirat", "mkdir"], "mkdir"),
    **dict.fromkeys(["symlinkat", "symlink"], "symlink"),
    **dict.fromkeys(["linkat", "link"], "link"),
    **dict.fromkeys(["readlinkat", "readlink"], "readlink"),
    **dict.fromkeys(["fchownat", "lchown", "fchown"], "chown"),
    **dict.fromkeys(["fchmodat", "chmod", "fchmod"], "chmod"),
    **dict.fromkeys(["flistxattr", "llistxattr"], "listxattr"),
    **dict.fromkeys(["fgetxattr", "lgetxattr", "getxattr"], "getxattr"),
    **dict.fromkeys(["fsetxattr", "lsetxattr", "setxattr"], "setxattr"),
    "removexattr": "removexattr",
    "utimensat": "utimes",
    "fstatfs": "statfs",
    "getdents64": "getdents",
    "fadvise64": "fadvise",
    "read": "read",
    "write": "write",
}


def _flags(text):
    return " ".join(sorted(set(re.findall(r"\bO_\w+", text)) - {"O_CLOEXEC", "O_LARGEFILE"}))


def _detail(kind, arguments, result):
    """What else of a call must be the same."""
    if kind in ("read", "getdents"):
        return arguments.rsplit(", ", 1)[1], result.split()[0]  # size of the buffer, what came
    if kind == "write":
        return (result.split()[0],)
    if kind == "open":
        mode = re.search(r", (0\d+)$", arguments)
        return _flags(arguments), mode and mode[1]
    if kind in ("mkdir", "chmod"):
        return (int(re.search(r", (0\d*)$", arguments)[1], 8) & 0o7777,)
    if kind == "chown":
        return tuple(re.search(r", (\d+), (\d+)", arguments).groups())
    if kind in ("getxattr", "setxattr", "removexattr"):
        return (_QUOTED.findall(arguments)[-1 if kind != "setxattr" else -2],)
    if kind in ("link", "symlink"):
        return (_QUOTED.findall(arguments)[0],)
    if kind == "remove":
        return ("AT_REMOVEDIR" in arguments,)
    return ()


def parse(text, below):
    """(kind, path, detail...) of each call on what is below the folder, paths relative to it; `strace -y` wrote it."""
    here = str(below)
    for line in text.splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        name, arguments, result = match.groups()
        if name == "fchdir":
            here = re.match(r"\d+<(.*)>", arguments)[1]
            continue
        kind = _KINDS.get(name)
        if kind is None:
            continue
        folder = re.match(r"(?:AT_FDCWD|\d+)<(.*?)>", arguments)
        names = _QUOTED.findall(arguments)
        path = folder[1] if folder else here
        if name in ("linkat", "link", "symlinkat", "symlink"):
            path = str(Path(here, names[1]))
        elif not re.match(r"f(?!chownat|chmodat)|read$|write$|getdents", name) and names and names[0]:
            path = str(Path(path, names[0]))
        if "/../" in path + "/":
            path = os.path.normpath(path)
        if Path(path).is_relative_to(below) and path != str(below):
            yield (kind, str(Path(path).relative_to(below)), *_detail(kind, arguments, result))


def strace(folder, arguments, below=None, status=0):
    trace = folder.parent / f"{folder.name}.strace"
    command = ["strace", "-y", "-s", "4096", "-o", trace, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode != status and b"ptrace" in done.stderr:
        pytest.skip("strace may not trace here")
    assert done.returncode == status, done.stderr
    return list(parse(trace.read_text(errors="replace"), below or folder)), done.stdout


def ours(folder, *operations):
    stream, records = folder.parent / f"{folder.name}.ops", folder.parent / f"{folder.name}.records"
    ops.write(stream, operations)
    calls, _ = strace(folder, [CORE, "native", folder, stream, records])
    found = record.parse(records.read_bytes())
    assert found.whole
    return calls, found


def assert_same(calls, wanted):
    """As an assertion of the whole lists, which pytest would compare for minutes."""
    for number, (ours, theirs) in enumerate(zip(calls, wanted, strict=False)):
        assert ours == theirs, f"call {number}, after {wanted[max(0, number - 5) : number]}"
    assert len(calls) == len(wanted), calls[len(wanted) :][:5] + wanted[len(calls) :][:5]


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "work"
    path.mkdir()
    return path


def snapshot(top):
    """All that a copy keeps of every file."""
    found, names = {}, {}
    for path in [top, *sorted(top.rglob("*"))]:
        about = path.lstat()
        relative = str(path.relative_to(top))
        if path.is_symlink():
            content = path.readlink()
        elif path.is_file():
            content = path.read_bytes()
        else:
            content = None
        extra = {} if path.is_symlink() else {name: os.getxattr(path, name) for name in os.listxattr(path)}
        first = names.setdefault(about.st_ino, relative)
        found[relative] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, content, extra, first)
    return found


def inode_order(top):
    return [entry.name for entry in sorted(os.scandir(top), key=lambda entry: entry.inode())]


@pytest.mark.parametrize("kind", ["d", "f"])
@pytest.mark.parametrize("make", [make_tree, make_big])
def test_find(folder, kind, make):
    _version("find", "4.9.0")
    make(folder / "t")
    wanted, output = strace(folder, ["find", "t", "-type", kind])
    calls, records = ours(folder, ops.walk("findutils-4.9", "t", kind))
    # fts asks for the kind of filesystem once, after the entry that is one too many; the core does so elsewhere.
    assert_same([call for call in calls if call[0] != "statfs"], [call for call in wanted if call[0] != "statfs"])
    [tree] = records.of("tree")
    assert tree["matches"] == len(output.splitlines())
    assert sum(tree["calls"].values()) == len(calls)


def test_find_of_2009_stats_everything_in_the_directory_s_order(folder):
    make_tree(folder / "t")
    calls, records = ours(folder, ops.walk("findutils-4.4.2", "t", "f"))

    def expected(path):
        yield "stat", path
        if not (folder / path).is_dir() or (folder / path).is_symlink():
            return
        yield "open", path
        yield "stat", path
        yield "getdents", path
        yield "getdents", path
        for entry in os.scandir(folder / path):  # in the order of readdir
            yield from expected(f"{path}/{entry.name}")
        if "/" in path:  # back by "..", which is looked at
            yield "open", str(Path(path).parent)
            yield "stat", str(Path(path).parent)

    assert [call[:2] for call in calls] == list(expected("t"))
    [tree] = records.of("tree")
    files = [path for path in (folder / "t").rglob("*") if path.is_file() and not path.is_symlink()]
    assert tree["matches"] == len(files)


@pytest.mark.parametrize("program", ["findutils-4.4.2+sorted", "findutils-4.9+sorted"])
def test_sorted_walks_go_by_inode(folder, program):
    make_big(folder / "t")
    calls, _ = ours(folder, ops.walk(program, "t", "d"))
    visited = dict.fromkeys(path for kind, path, *_ in calls if kind == "stat" and path != "t")
    order = [f"t/{name}" for name in inode_order(folder / "t")]
    if program.startswith("findutils-4.9"):
        order = [path for path in order if (folder / path).is_dir()]
    assert list(visited) == order


def test_cp(folder):
    _version("cp", "9.1")
    make_tree(folder / "t")
    wanted, _ = strace(folder, ["cp", "-a", "--reflink=never", "t", "u"])
    theirs = snapshot(folder / "u")
    shutil.rmtree(folder / "u")
    calls, records = ours(folder, ops.copy("coreutils-9.1", "t", "u"))
    assert_same(calls, wanted)
    assert snapshot(folder / "u") == theirs == snapshot(folder / "t")
    [tree] = records.of("tree")
    assert tree["bytes"] == sum(int(detail[0]) for kind, _, *detail in calls if kind == "write")
    # What only lasts as long as the kernel caches the file is not counted.
    assert sum(tree["calls"].values()) == len([call for call in calls if call[0] != "fadvise"])


def test_cp_of_2011_copies_in_the_directory_s_order(folder):
    make_tree(folder / "t")
    (folder / "t" / "closed").mkdir(mode=0o500)
    calls, _ = ours(folder, ops.copy("coreutils-8.12", "t", "u"))
    assert snapshot(folder / "u") == snapshot(folder / "t")

    def expected(path):
        yield path
        if (folder / path).is_dir() and not (folder / path).is_symlink():
            for entry in os.scandir(folder / path):
                yield from expected(f"{path}/{entry.name}")

    visited = dict.fromkeys(path for kind, path, *_ in calls if kind == "stat" and path[0] == "t")
    assert list(visited) == list(expected("t"))
    of_large = [call[0] for call in calls if call[1].endswith(("/large", "/other name of large"))]
    # Eleven times the 32 KiB buffer for 300,000 bytes, the last time nothing.
    first = of_large[: of_large.index("setxattr") + 1 if "setxattr" in of_large else None]
    assert [kind for kind in first if kind != "link"][:5] == ["stat", "open", "stat", "open", "stat"]
    assert of_large.count("read") == 11
    assert of_large.count("write") == 10
    assert {call[2] for call in calls if call[0] == "read"} == {"32768"}
    assert not [call for call in calls if call[0] == "fadvise"]


def test_rm(folder):
    _version("rm", "9.1")
    make_tree(folder / "t")
    wanted, _ = strace(folder, ["rm", "-rf", "t"])
    make_tree(folder / "t")
    calls, _ = ours(folder, ops.remove("coreutils-9.1", "t"))
    assert_same(calls, wanted)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("program", ["coreutils-9.1", "coreutils-8.12"])
def test_rm_of_a_big_directory_goes_by_inode(folder, program):
    make_big(folder / "t")
    order = inode_order(folder / "t")
    calls, _ = ours(folder, ops.remove(program, "t"))
    assert [path for kind, path, *_ in calls if kind == "remove"] == [f"t/{name}" for name in order] + ["t"]
    opened = [call for call in calls if call[0] == "open"]
    # 9.1 looks whether each of the 101 directories is empty; 8.12 goes into them. The top, which is not, twice.
    assert len(opened) == 101 + (2 if program == "coreutils-9.1" else 1)


def test_rm_of_2011_opens_each_directory_once(folder):
    make_tree(folder / "t")

    def expected(path):
        if (folder / path).is_dir() and not (folder / path).is_symlink():
            for entry in os.scandir(folder / path):
                yield from expected(f"{path}/{entry.name}")
        yield path

    order = list(expected("t"))
    folders = [path for path in order if (folder / path).is_dir() and not (folder / path).is_symlink()]
    calls, _ = ours(folder, ops.remove("coreutils-8.12", "t"))
    assert [path for kind, path, *_ in calls if kind == "remove"] == order
    named = [call for call in calls if call[0] == "open" and "O_NOFOLLOW" in call[2]]
    assert sorted({call[1] for call in named}) == sorted(folders)
    assert len([call for call in calls if call[0] == "getdents"]) == 2 * len(folders)


@pytest.mark.parametrize(
    ("operation", "path", "error"),
    [
        (ops.walk("findutils-4.9", "none", "d"), "none", "ENOENT"),
        (ops.remove("coreutils-9.1", "none"), "none", "ENOENT"),
        (ops.copy("coreutils-9.1", "t", "t/shared"), "t", "EEXIST"),
        (ops.copy("coreutils-9.1", "t", "t/file-1"), "t", "ENOTDIR"),
        (ops.copy("coreutils-8.12", "t", "empty/no/u"), "t", "ENOENT"),
    ],
)
def test_failures_say_where(folder, operation, path, error):
    make_tree(folder / "t")
    stream, records = folder.parent / "ops", folder.parent / "records"
    ops.write(stream, [operation])
    assert subprocess.run([CORE, "native", folder, stream, records], check=False).returncode == 1
    [fail] = record.parse(records.read_bytes()).of("fail")
    assert (fail["path"], fail["error"]) == (path, error)
