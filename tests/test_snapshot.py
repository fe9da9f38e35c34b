"""Debian's archive of a past moment, from a local server as snapshot.debian.org is one."""

import shutil

import archive
import pytest

from fsexp import apt, lock
from fsexp.errors import MachineError, UserError
from fsexp.kernel import debian

pytestmark = pytest.mark.skipif(not (shutil.which("apt-get") and shutil.which("gpg")), reason="no apt or no gpg")

KERNELS = {"6.1.0-17-amd64": "6.1.69", "6.1.0-18-amd64": "6.1.76"}
STATE = "20240130T203401Z"
DATE, VALID_UNTIL = "Tue, 30 Jan 2024 20:00:00 UTC", "Tue, 06 Feb 2024 20:00:00 UTC"


@pytest.fixture(scope="module")
def keys():
    keys = archive.Keys()
    keys.make("current", "2023-01-01", "never")
    keys.make("retired", "2020-01-01", "2024-06-01")  # since then it has expired
    keys.make("stranger", "2023-01-01", "never")
    keys.make("late", "2020-01-01", "never")
    yield keys
    keys.close()


@pytest.fixture
def snapshots(keys, tmp_path, monkeypatch):
    """A function that serves an archive signed by a key (none: unsigned) and gives the source's spec."""
    monkeypatch.setattr(apt, "KEYRINGS", [keys.keyring(tmp_path / "current.gpg", "current")])
    monkeypatch.setattr(apt, "RETIRED_KEYRINGS", [keys.keyring(tmp_path / "retired.gpg", "retired")])
    # Not the machine's settings: it may be set to take expired lists from anywhere, or to fetch by a proxy.
    (tmp_path / "apt.conf").write_text('Dir::Etc { main "none"; parts "none"; };\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    servers = []

    def serve(key="current", suite="bookworm", security=None):
        debs = archive.kernel_debs(tmp_path, KERNELS)
        sign = key and (lambda text: keys.sign(key, text, "2024-01-30"))
        if key == "late":
            sign = sign_after_expiry
        archive.build(tmp_path / "archive", suite, debs, DATE, VALID_UNTIL, sign)
        states = {("debian", STATE): tmp_path / "archive"}
        if security:
            (tmp_path / "updates").mkdir()
            debs = archive.kernel_debs(tmp_path / "updates", security)
            archive.build(tmp_path / "security", f"{suite}-security", debs, DATE, VALID_UNTIL, sign)
            states["debian-security", STATE] = tmp_path / "security"
        servers.append(archive.Server(states))
        return {
            "suite": suite, "package": "linux-image-amd64", "snapshot": "2024-01-31",
            "snapshot_mirror": servers[-1].template,
        }  # fmt: skip

    def sign_after_expiry(text):
        signed = keys.sign("late", text, "2024-01-30")
        keys.gpg("--quick-set-expire", keys.fingerprint("late"), "2024-01-29", day="2024-01-28")
        keys.keyring(tmp_path / "retired.gpg", "late")
        return signed

    yield serve
    for server in servers:
        server.close()


def private(spec, tmp_path):
    return apt.private(spec, [spec["suite"]], tmp_path / "cache")


def test_a_moment_is_a_day_or_a_timestamp():
    assert apt.timestamp("2024-01-31") == "20240131T000000Z"
    assert apt.timestamp("20240131T123456Z") == "20240131T123456Z"
    for wrong in ("2024-02-30", "31.1.2024", "20240131", "20240131T250000Z", ""):
        with pytest.raises(UserError, match="no date as 2024-01-31"):
            apt.timestamp(wrong)


@pytest.mark.parametrize("key", ["current", "retired"])
def test_expired_lists_are_taken_when_a_key_of_debian_signed_them(snapshots, tmp_path, key):
    spec = snapshots(key)
    found = apt.pinned(
        debian.key(spec), tmp_path / "k.lock", tmp_path / "cache", private(spec, tmp_path),
        lambda a: debian.choose(a.show, spec["package"]),
    )  # fmt: skip
    assert [(r["package"], r["version"]) for r, _ in found] == [("linux-image-6.1.0-18-amd64", "6.1.76-1")]
    assert found[0][1].read_bytes() == (tmp_path / "linux-image-6.1.0-18-amd64_6.1.76-1_amd64.deb").read_bytes()
    assert list(lock.read(tmp_path / "k.lock")) == ["debian:bookworm:linux-image-amd64@20240131T000000Z"]


def test_the_security_archive_of_that_moment_counts_too(snapshots, tmp_path):
    spec = snapshots(security={"6.1.0-19-amd64": "6.1.82"})
    chosen = debian.choose(private(spec, tmp_path).show, spec["package"])
    assert [record["version"] for record in chosen] == ["6.1.82-1"]


def test_a_ladder_of_that_moment(snapshots, tmp_path):
    spec = {**snapshots(), "ladder": {"from": "6.1", "to": "6.1"}}
    found = debian.ladder(spec, tmp_path / "cache", tmp_path / "k.lock")
    assert [(version, rung["package"], rung["snapshot"]) for version, rung in found] == [
        ("6.1.69", "linux-image-6.1.0-17-amd64", "2024-01-31"),
        ("6.1.76", "linux-image-6.1.0-18-amd64", "2024-01-31"),
    ]


def test_an_archived_release_on_a_mirror(snapshots, tmp_path):
    spec = snapshots("retired", suite="jessie")
    mirror = spec["snapshot_mirror"].format(archive="debian", timestamp="newest")
    assert (
        private({"suite": "jessie", "mirror": mirror}, tmp_path).candidate("linux-image-amd64")["version"] == "6.1.76-1"
    )


@pytest.mark.parametrize("key", ["stranger", "late", None])
def test_what_cannot_be_verified_is_refused(snapshots, tmp_path, key):
    spec = snapshots(key)
    with pytest.raises(UserError, match=r"lists of Debian bookworm can't be verified.*127\.0\.0\.1"):
        private(spec, tmp_path).update()


def test_a_retired_key_is_refused_where_the_archive_is_no_past_one(snapshots, tmp_path):
    spec = snapshots("retired")
    mirror = spec["snapshot_mirror"].format(archive="debian", timestamp="newest")
    with pytest.raises(UserError, match="can't be verified"):
        private({"suite": "bookworm", "mirror": mirror}, tmp_path).update()


def test_expired_lists_of_a_mirror_that_is_no_snapshot_are_refused(snapshots, tmp_path):
    spec = snapshots("current")
    mirror = spec["snapshot_mirror"].format(archive="debian", timestamp="newest")
    with pytest.raises(UserError, match=r"can't be verified.*expired"):
        private({"suite": "bookworm", "mirror": mirror}, tmp_path).update()


def test_a_moment_before_the_archive_began(snapshots, tmp_path):
    spec = snapshots() | {"snapshot": "2023-01-01"}
    with pytest.raises(UserError, match="Debian's archive of 20230101T000000Z has no Debian suite bookworm"):
        private(spec, tmp_path).update()


def test_a_snapshot_service_that_is_not_there(snapshots, tmp_path):
    spec = snapshots() | {"snapshot_mirror": "http://127.0.0.1:9/{archive}/{timestamp}/"}
    with pytest.raises(MachineError, match=r"of 20240131T000000Z can't be fetched; apt says: .*127\.0\.0\.1"):
        private(spec, tmp_path).update()
