import os
import shutil
import subprocess

import packages
import pytest

from fsexp import apt, digest, lock
from fsexp.errors import MachineError, UserError

UNKNOWN = "$(ORIGIN)"
NO_KEY = "$(SIGNED_BY)"
MAIN = ("http://mirror.test/debian/", "bookworm", "main", "Debian", NO_KEY)
SECURITY = ("http://mirror.test/debian-security/", "bookworm-security", "main", "Debian", NO_KEY)
KEY = "/usr/share/keyrings/debian-archive-keyring.gpg"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([MAIN, SECURITY], (MAIN[0], SECURITY[0])),
        ([MAIN], (MAIN[0], None)),
        # third parties, fetched and never fetched, do not count
        ([("https://other.test/", "bookworm", "main", "Other", NO_KEY), MAIN], (MAIN[0], None)),
        ([("https://other.test/", "bookworm-pgdg", "main", UNKNOWN, NO_KEY), MAIN], (MAIN[0], None)),
        ([("https://other.test/", "bookworm", "stable", UNKNOWN, NO_KEY), MAIN], (MAIN[0], None)),
        ([("https://other.test/", "bookworm", "main", UNKNOWN, "/etc/other.gpg"), MAIN], (MAIN[0], None)),
        (
            [("https://other.test/x", "bookworm", "main", UNKNOWN, NO_KEY), (*MAIN[:3], UNKNOWN, NO_KEY)],
            (MAIN[0], None),
        ),
        ([("cdrom:[Debian]/", "bookworm", "main", UNKNOWN, NO_KEY), MAIN], (MAIN[0], None)),
        # never fetched: known by the key, or by the path
        ([("http://a.test/x/", "bookworm", "main", UNKNOWN, KEY)], ("http://a.test/x/", None)),
        ([("http://a.test/debian/", "stable", "main", UNKNOWN, NO_KEY)], ("http://a.test/debian/", None)),
        ([("http://a.test/x/", "bookworm-updates", "main", UNKNOWN, NO_KEY)], ("http://a.test/x/", None)),
        # the same source twice, its origin known once
        ([MAIN, (*MAIN[:3], UNKNOWN, NO_KEY), (*SECURITY[:3], UNKNOWN, NO_KEY)], (MAIN[0], SECURITY[0])),
    ],
)
def test_the_mirror_is_the_machines(rows, expected):
    assert apt.choose_sources(rows, "bookworm") == expected


@pytest.mark.parametrize("rows", [[], [SECURITY], [("http://a.test/ubuntu/", "noble", "main", "Ubuntu", NO_KEY)]])
def test_no_mirror_is_the_users_to_mend(rows):
    with pytest.raises(UserError, match="mirror"):
        apt.choose_sources(rows, "bookworm")


def test_stanzas_and_dependencies():
    text = (
        "Package: a\nVersion: 1\nDescription: short\n long\n .\n more\nDepends: b (>= 1.2~) | c, d:any, e (= 1:2-3)\n"
        "Pre-Depends: f\n\nPackage: b\n"
    )
    first, second = apt.stanzas(text)
    assert second == {"Package": "b"}
    assert first["Description"] == "short\nlong\n.\nmore"
    assert apt.dependencies(first) == [
        [("f", "", "")],
        [("b", ">=", "1.2~"), ("c", "", "")],
        [("d", "", "")],
        [("e", "=", "1:2-3")],
    ]


@pytest.fixture
def cached(tmp_path):
    (tmp_path / "downloads").mkdir()
    path = packages.make_deb(tmp_path / "downloads" / "zlib1g_1.2-3_amd64.deb", {"./usr/x": b"x"})
    return path, packages.deb_record(path) | {"version": "1:1.2-3"}


def refuse(*arguments, **_):
    raise AssertionError(f"called {arguments}")


def test_a_package_in_the_cache_needs_nothing(cached, tmp_path, monkeypatch):
    path, record = cached
    monkeypatch.setattr(subprocess, "run", refuse)
    private = apt.PrivateApt(tmp_path / "root", ["bookworm"])
    assert private.download("zlib1g", "1:1.2-3", record["sha256"], into=path.parent) == path
    lock.put(tmp_path / "l", "k", {"packages": [record]})
    assert apt.pinned("k", tmp_path / "l", tmp_path, private, refuse) == [(record, path)]
    assert not (tmp_path / "root").exists()


def test_without_apt_the_message_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(apt, "KEYRINGS", [tmp_path])
    with pytest.raises(MachineError, match="apt is installed"):
        apt.PrivateApt(tmp_path / "root", ["bookworm"]).update()


def test_without_the_keys_the_message_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(apt, "KEYRINGS", [tmp_path / "none"])
    with pytest.raises(UserError, match="install the package debian-archive-keyring"):
        apt.PrivateApt(tmp_path / "root", ["bookworm"]).update()


class Scripted:
    """Stands in for apt's programs: answers by the words of the call."""

    def __init__(self, answers):
        self.answers, self.calls = answers, []

    def __call__(self, argv, environment, cwd=None):
        self.calls.append(argv)
        status, out, err = next((a for words, a in self.answers.items() if words in " ".join(argv)), (0, "", ""))
        return subprocess.CompletedProcess(argv, status, out, err)


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    def start(answers):
        program = Scripted(answers)
        monkeypatch.setattr(apt, "_run", program)
        monkeypatch.setattr(apt, "KEYRINGS", [tmp_path])
        monkeypatch.setattr(apt, "machine_sources", lambda: (MAIN[0], SECURITY[0]))
        return program

    return start


def test_only_settings_about_fetching_are_copied(scripted, tmp_path):
    scripted(
        {
            "apt-config dump": (
                0,
                'Acquire::http::Proxy "http://proxy.test:1/";\nAcquire::Check-Valid-Until "false";\n'
                'Acquire::AllowInsecureRepositories "1";\nAcquire::Languages:: "de";\nAcquire::http "";\n'
                'DPkg::Post-Invoke:: "rm x";\nAcquire::IndexTargets::deb::Contents::X "y";\n',
                "",
            ),
            "indextargets": (0, "bookworm\n", ""),
        }
    )
    assert apt.PrivateApt(tmp_path / "r", ["bookworm"]).update() is True
    text = (tmp_path / "r" / "apt.conf").read_text()
    assert 'Acquire::http::Proxy "http://proxy.test:1/";' in text
    assert 'Acquire::Check-Valid-Until "false";' in text
    for absent in ("Insecure", '"de"', "Invoke", "IndexTargets", 'Acquire::http "'):
        assert absent not in text


def suites_of(root):
    text = (root / "etc/apt/sources.list.d/debian.sources").read_text()
    return [line.split()[1] for line in text.splitlines() if line.startswith("Suites:")]


@pytest.mark.parametrize(
    ("suites", "mirror", "expected"),
    [
        (["bookworm"], None, ["bookworm", "bookworm-updates", "bookworm-security"]),
        (["bookworm"], "http://m.test/debian", ["bookworm", "bookworm-updates"]),
        (["buster"], None, ["buster", "buster-updates", "buster/updates"]),
        (["sid"], None, ["sid"]),
        (["trixie-backports"], None, ["trixie-backports"]),
    ],
)
def test_companion_suites(scripted, tmp_path, suites, mirror, expected):
    scripted({"indextargets": (0, "\n".join(suites), "")})
    apt.PrivateApt(tmp_path / "r", suites, mirror).update()
    assert suites_of(tmp_path / "r") == expected


def test_a_companion_suite_that_the_mirror_lacks_is_left_out(scripted, tmp_path):
    missing = "E: The repository 'http://m.test/debian etch-updates Release' does not have a Release file.\n"
    program = scripted({"update": (100, "", missing), "indextargets": (0, "etch", "")})
    apt.PrivateApt(tmp_path / "r", ["etch"], "http://m.test/debian").update()
    assert suites_of(tmp_path / "r") == ["etch"]
    assert sum("update" in call for call in program.calls) == 2


def test_offline_with_lists_is_not_fresh(scripted, tmp_path):
    scripted({"update": (100, "", "E: no network\n"), "indextargets": (0, "bookworm\n", "")})
    assert apt.PrivateApt(tmp_path / "r", ["bookworm"]).update() is False


def test_offline_without_lists_is_an_error(scripted, tmp_path):
    scripted({"update": (100, "", "W: x\nE: Failed to fetch\n")})
    with pytest.raises(MachineError, match="bookworm can't be fetched; apt says: Failed to fetch"):
        apt.PrivateApt(tmp_path / "r", ["bookworm"]).update()


def test_a_suite_that_does_not_exist_is_the_users_to_mend(scripted, tmp_path):
    scripted({"update": (100, "", "E: The repository 'http://m nope Release' does not have a Release file.\n")})
    with pytest.raises(UserError, match="no Debian suite nope"):
        apt.PrivateApt(tmp_path / "r", ["nope"]).update()


def test_a_pinned_version_that_is_gone_names_the_line(scripted, cached, tmp_path):
    path, record = cached
    path.unlink()
    scripted({"indextargets": (0, "bookworm\n", ""), "download-file": (100, "", "E: 404 Not Found\n")})
    lock_file = tmp_path / "kernels.lock"
    lock.put(lock_file, "k", {"packages": [record]})
    private = apt.PrivateApt(tmp_path / "r", ["bookworm"])
    with pytest.raises(apt.NotOffered, match=r"404.*remove the entry 'k' \(line 4\) from .*kernels\.lock"):
        apt.pinned("k", lock_file, tmp_path, private, refuse)


def test_a_pinned_digest_that_is_not_the_archives(scripted, cached, tmp_path):
    path, record = cached
    path.unlink()
    show = f"Package: zlib1g\nVersion: 1:1.2-3\nSHA256: {'b' * 64}\nSize: 1\nFilename: pool/z.deb\n"
    program = scripted({"show": (0, show, ""), "indextargets": (0, "bookworm\n", "")})
    lock_file = tmp_path / "kernels.lock"
    lock.put(lock_file, "k", {"packages": [record]})
    with pytest.raises(UserError) as caught:
        apt.pinned("k", lock_file, tmp_path, apt.PrivateApt(tmp_path / "r", ["bookworm"]), refuse)
    said = str(caught.value)
    assert f"has zlib1g 1:1.2-3 with the sha256 {'b' * 64}, and {record['sha256']} was asked for" in said
    assert "the digest differs" in said and "no longer offers" not in said
    assert f"To take what the archive has instead, remove the entry 'k' (line 4) from {lock_file}." in said
    assert not [call for call in program.calls if "download-file" in call or call[-2:-1] == ["download"]]


@pytest.mark.parametrize(
    "entry",
    [{}, {"packages": []}, {"packages": {}}, {"packages": [{}]}, {"packages": ["p"]}, {"packages": [{"package": "p"}]}],
)
def test_a_damaged_entry_names_the_line(scripted, tmp_path, entry):
    scripted({})
    lock.put(tmp_path / "kernels.lock", "k", entry)
    private = apt.PrivateApt(tmp_path / "r", ["bookworm"])
    with pytest.raises(UserError, match=r"the entry 'k' \(line 4\) of .*kernels\.lock is damaged: mend it"):
        apt.pinned("k", tmp_path / "kernels.lock", tmp_path, private, refuse)


def test_a_damaged_download_is_not_kept(scripted, tmp_path):
    show = "Package: p\nVersion: 1\nSHA256: 00\nSize: 1\nFilename: pool/p_1_all.deb\n"
    scripted({"show": (0, show, ""), "indextargets": (0, "bookworm\n", "")})
    private = apt.PrivateApt(tmp_path / "r", ["bookworm"])
    (tmp_path / "r" / "partial").mkdir(parents=True)
    (tmp_path / "r" / "partial" / "p_1_all.deb").write_bytes(b"?")
    with pytest.raises(MachineError, match="damaged"):
        private.download("p", "1", into=tmp_path / "d")
    assert not list((tmp_path / "d").iterdir())


@pytest.fixture(scope="module")
def private(tmp_path_factory):
    return apt.PrivateApt(tmp_path_factory.mktemp("root"), ["bookworm"])


network = [pytest.mark.network, pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt")]


class TestMirror:
    pytestmark = network

    def test_a_package_with_an_epoch(self, private, tmp_path):
        record = private.candidate("zlib1g")
        path = private.download("zlib1g", record["version"], into=tmp_path)
        assert digest.of_file(path) == record["sha256"]
        assert path.stat().st_size == record["bytes"]
        assert os.listdir(tmp_path) == [path.name]  # noqa: PTH208

    def test_what_the_index_lacks_comes_from_the_pool(self, private, tmp_path):
        record = private.candidate("libss2")
        path = private.download("libss2", "0.1", record["sha256"], into=tmp_path, filename=record["filename"])
        assert digest.of_file(path) == record["sha256"]

    def test_resolve(self, private):
        names = [record["package"] for record in private.resolve(["e2fsprogs"])]
        assert {"e2fsprogs", "libc6", "libext2fs2"} <= set(names)
        assert names == sorted(names)

    def test_unknown_package(self, private):
        with pytest.raises(apt.NotOffered, match="has no package does-not-exist"):
            private.resolve(["does-not-exist"])
