import subprocess
import tarfile

import packages
import pytest

from fsexp import lock, userland

FILES = {
    "libc6_2_amd64.deb": {
        "./lib/": (0o755, None),
        "./lib64/ld-linux-x86-64.so.2": ("link", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"),
        "./lib/x86_64-linux-gnu/ld-linux-x86-64.so.2": (0o755, b"ld"),
        "./lib/x86_64-linux-gnu/libm.so.6": ("link", "libm-2.so"),
        "./lib/x86_64-linux-gnu/other.so": ("link", "../../usr/lib/real.so"),
        "./usr/lib/up": ("link", "../bin/tool"),
        "./usr/share/doc/libc6/copyright": b"(c)",
        "./usr/share/locale/de/x.mo": b"mo",
        "./usr/share/zoneinfo/UTC": b"tz",
        "./usr/lib/python3.11/test/test_os.py": b"test",
        "./usr/lib/python3.11/os.py": b"os",
        "./usr/bin/dash": (0o755, b"dash"),
    },
    "base_1_all.deb": {
        "./bin": ("link", "usr/bin"),
        "./tmp/": (0o1777, None),
        "./sbin/mkfs": (0o4755, b"#!mkfs"),
        "./usr/bin/zz": b"same",
        "./usr/bin/aa": ("hard", "./usr/bin/zz"),
        "./usr/share/doc/x": b"",
        "./usr/bin/orphan": ("hard", "./usr/share/doc/x"),
    },
}
SPEC = {"suite": "bookworm", "packages": ["mkfs", "base"]}


@pytest.fixture
def fetched(tmp_path, monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"called {arguments}")

    monkeypatch.setattr(subprocess, "run", refuse)
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    debs = [packages.make_deb(downloads / name, files) for name, files in FILES.items()]
    records = [packages.deb_record(path) for path in debs]
    lock.put(tmp_path / "u.lock", userland.key(SPEC), {"packages": records})
    return userland.fetch(SPEC, tmp_path / "cache", tmp_path / "u.lock", tmp_path / "u")


@pytest.fixture
def members(fetched, tmp_path):
    with tarfile.open(tmp_path / "u" / "root.tar") as tar:
        return {member.name: member for member in tar.getmembers()}


def test_the_tar_depends_on_nothing_but_the_packages(members):
    assert list(members) == sorted(members)
    assert {(m.uid, m.gid, m.mtime, m.uname, m.gname) for m in members.values()} == {(0, 0, 0, "", "")}


def test_usr_is_merged(members):
    for name in ("bin", "sbin", "lib", "lib64"):
        assert members[name].linkname == f"usr/{name}"
        assert members[f"usr/{name}"].isdir()
    assert members["usr/lib/x86_64-linux-gnu/other.so"].linkname == "../real.so"
    assert members["usr/lib/x86_64-linux-gnu/libm.so.6"].linkname == "libm-2.so"
    assert members["usr/lib/up"].linkname == "../bin/tool"
    assert members["usr/lib64/ld-linux-x86-64.so.2"].issym()


def test_no_documents_and_no_set_user_id(members):
    assert not [name for name in members if name.startswith(("usr/share/", "usr/lib/python3.11/test"))]
    assert "usr/lib/python3.11/os.py" in members
    assert members["usr/sbin/mkfs"].mode == 0o755
    assert members["tmp"].mode == 0o1777


def test_hard_links_have_their_file_first(members):
    assert members["usr/bin/aa"].isreg()
    assert members["usr/bin/aa"].size == 4
    assert members["usr/bin/zz"].islnk()
    assert members["usr/bin/zz"].linkname == "usr/bin/aa"
    assert "usr/bin/orphan" not in members


# What `readelf -n` of binutils 2.40 calls "OS: Linux, ABI: 3.2.0", from the libc.so.6 of glibc 2.36-9+deb12u14.
ABI_TAG = bytes.fromhex("04000000 10000000 01000000 474e5500 00000000 03000000 02000000 00000000")


def test_the_oldest_kernel_of_the_c_library(tmp_path, fetched):
    assert fetched["least_kernel"] is None
    name = "usr/lib/x86_64-linux-gnu/libc.so.6"
    path = packages.make_deb(tmp_path / "libc6_3_amd64.deb", {f"./{name}": b"\x7fELF" + ABI_TAG + b"more"})
    least = userland._least_kernel(userland.entries([path]))
    assert least == "3.2.0"
    userland.check_kernel({"least_kernel": least}, "3.2.7")
    with pytest.raises(userland.Unsupported, match=r"needs Linux 3\.2\.0, and this is 2\.6\.39\.4"):
        userland.check_kernel({"least_kernel": least}, "2.6.39.4")


def unpack(archive, folder):
    # By tar: how tarfile does it depends on Python's version, and Debian 12's has no filter to choose.
    folder.mkdir()
    subprocess.check_call(["tar", "-xf", archive, "-C", folder])


def test_it_unpacks(fetched, tmp_path):
    unpack(tmp_path / "u" / "root.tar", tmp_path / "root")
    assert (tmp_path / "root" / "sbin" / "mkfs").read_bytes() == b"#!mkfs"
    assert (tmp_path / "root/bin/aa").samefile(tmp_path / "root/usr/bin/zz")


def test_the_description(fetched, tmp_path):
    assert [p["package"] for p in fetched["packages"]] == ["libc6", "base"]
    again = userland.fetch(SPEC, tmp_path / "cache", tmp_path / "u.lock", tmp_path / "u")
    assert again == fetched


def test_what_scripts_would_have_made_is_there(members):
    assert members["etc/passwd"].isreg()
    assert members["usr/bin/sh"].linkname == "dash"
    assert "usr/bin/awk" not in members  # for there is no mawk


def test_an_interpreter_comes_only_where_it_is_named():
    named = ["fio", "libc6", "perl-base", "libpython3.11-stdlib"]
    assert [name for name in named if userland._wanted(name, ["fio"])] == ["fio", "libc6"]
    assert [name for name in named if userland._wanted(name, ["python3"])] == ["fio", "libc6", "libpython3.11-stdlib"]


def test_packages_are_carried_as_they_are(tmp_path, monkeypatch):
    downloads = tmp_path / "cache" / "downloads"
    downloads.mkdir(parents=True)
    debs = [packages.make_deb(downloads / name, files) for name, files in FILES.items()]
    for key, path in zip(("debian:bookworm:libc6", "debian:bookworm:deb:base"), debs, strict=True):
        lock.put(tmp_path / "u.lock", key, {"packages": [packages.deb_record(path)]})
    spec = {"suite": "bookworm", "packages": ["deb:base", "libc6"]}
    described = userland.fetch(spec, tmp_path / "cache", tmp_path / "u.lock", tmp_path / "u")
    assert [one["package"] for one in described["packages"]] == ["libc6", "base"]
    with tarfile.open(tmp_path / "u" / "root.tar") as tar:
        assert tar.extractfile(userland.deb_path("base")[1:]).read() == debs[1].read_bytes()
        assert "usr/sbin/mkfs" not in tar.getnames()


@pytest.mark.network
def test_real_programs_run_in_it(tmp_path):
    spec = {"suite": "bookworm", "packages": ["e2fsprogs"]}
    userland.fetch(spec, tmp_path / "cache", tmp_path / "u.lock", tmp_path / "u")
    unpack(tmp_path / "u" / "root.tar", tmp_path / "root")
    # its own loader and libraries, by the default folders alone
    loader = tmp_path / "root/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    library = tmp_path / "root/usr/lib/x86_64-linux-gnu"
    program = tmp_path / "root/sbin/mkfs.ext4"
    done = subprocess.run(
        [loader, "--library-path", library, program, "-V"], capture_output=True, text=True, check=True
    )
    assert "mke2fs 1.47" in done.stderr
