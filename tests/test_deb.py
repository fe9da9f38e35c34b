import packages
import pytest

from fsexp import deb
from fsexp.errors import UserError


@pytest.mark.parametrize("compression", packages.COMPRESS)
def test_contents_in_every_compression(tmp_path, compression):
    path = packages.make_deb(tmp_path / "x.deb", {"./usr/bin/a": b"A" * 5001, "./usr/b": b""}, compression)
    with deb.contents(path) as tar:
        assert tar.getnames() == ["./usr/bin/a", "./usr/b"]
        assert tar.extractfile("./usr/bin/a").read() == b"A" * 5001


def test_no_package(tmp_path):
    (tmp_path / "x.deb").write_bytes(b"<html>")
    with pytest.raises(UserError, match="not a Debian package"), deb.contents(tmp_path / "x.deb"):
        pass


def test_a_cut_package(tmp_path):
    path = packages.make_deb(tmp_path / "x.deb", {"./usr/bin/a": bytes(range(256)) * 99})
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(UserError, match="damaged"), deb.contents(path):
        pass


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("./bin/sh", "usr/bin/sh"),
        ("./lib64/ld.so", "usr/lib64/ld.so"),
        ("./usr/lib/x", "usr/lib/x"),
        ("./library/x", "library/x"),
        ("./", ""),
    ],
)
def test_installed_path(name, merged):
    assert deb.installed_path(name) == merged
