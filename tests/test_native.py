"""`fsexp native`: a workload on the host's own filesystem."""

import re

import pytest

from fsexp import cli, manifest, native, ops, pattern
from fsexp.errors import UserError


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "in"
    made.mkdir()
    return made


def call(capsys, *words):
    try:
        status = cli.main(["native", *map(str, words)])
    except SystemExit as error:  # argparse's
        status = error.code
    return status, *capsys.readouterr()


def test_a_workload_by_name(folder, capsys):
    status, out, err = call(capsys, "create-unlink", "--directory", folder, "-p", "nfiles=1234")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["phase", "s", "operations", "MiB", "passed", "over"]
    assert re.fullmatch(r"create +\d[\d.]* +1,234 +0\.00 +0", lines[1])
    assert re.fullmatch(r"delete +\d[\d.]* +1,234 +0\.00 +0", lines[2])
    assert len({len(line) for line in lines[:3]}) == 1
    assert list(folder.iterdir()) == []  # as the workload leaves it


def test_a_stream_of_a_file(folder, tmp_path, capsys):
    operations = [ops.phase("p"), ops.open(0, "f", 0o101), ops.write_data(0, 3, 0, 3 * 2**19), ops.phase_end()]
    ops.write(tmp_path / "x.ops", [*operations, ops.close(0)])
    status, out, _ = call(capsys, tmp_path / "x.ops", "--directory", folder)
    assert status == 0
    assert re.fullmatch(r"p +\d[\d.]* +2 +1\.50 +0", out.splitlines()[1])
    assert (folder / "f").read_bytes() == pattern.content(3, 0, 3 * 2**19)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create-unlik"], "there is no workload 'create-unlik'"),
        (["create-unlink", "-p", "nfiles"], "a parameter is given as name=value, and 'nfiles' is not"),
        (["create-unlink", "-p", "=1"], "a parameter is given as name=value, and '=1' is not"),
        (["create-unlink", "-p", "files=5"], "create-unlink: no such key 'files'"),
        (["create-unlink", "-p", "nfiles=many"], "create-unlink.nfiles: must "),
        (["create-unlink", "-p", "nfiles=0"], "create-unlink.nfiles: must "),
        (["create-unlink", "-p", "nfiles=["], "the value of the parameter 'nfiles' can't be read: '['"),
        (["create-unlink", "-p", "nfiles=1", "-p", "nfiles=1"], "the parameter 'nfiles' is given twice"),
        (["fault"], "fault.kind: "),
        (
            ["fault", "-p", "kind=no-such-file"],
            "workload-failed: unlink 'no/such/file': ENOENT (errno 2) in phase during",
        ),
    ],
)
def test_the_users_errors(folder, capsys, words, said):
    status, out, err = call(capsys, *words, "--directory", folder)
    assert (status, out) == (1, "")
    assert err.startswith(f"fsexp: {said}")
    assert err.count("\n") == 1


def verified(path, size):
    """A stream that verifies twice: a file of that size, and then none."""
    ops.write(
        path,
        [
            *(ops.mkdir("d", 0o750), ops.open(0, "d/f", 0o101, 0o600), ops.write_data(0, 1, 7, size), ops.close(0)),
            *(ops.remount(), ops.verify("/fsexp/manifests/first")),
            *(ops.unlink("d/f"), ops.verify("/fsexp/manifests/second")),
        ],
    )
    return path


def test_what_must_be_there_is_compared(folder, tmp_path, monkeypatch, capsys):
    stream = verified(tmp_path / "x.ops", 1000)
    assert call(capsys, stream, "--directory", folder)[0] == 0
    assert [path.name for path in folder.iterdir()] == ["d"]
    # The manifests of a stream that writes one byte more.
    others = list(manifest.asked_for(verified(tmp_path / "y.ops", 1001)))
    assert [path for path, _ in others] == ["/fsexp/manifests/first", "/fsexp/manifests/second"]
    monkeypatch.setattr(manifest, "asked_for", lambda _: iter(others))
    (folder / "d").rmdir()
    status, _, err = call(capsys, stream, "--directory", folder)
    assert status == 1
    assert err.startswith("fsexp: corrupt: ")
    assert "d/f" in err and "1001" in err


def test_two_manifests_need_two_paths(tmp_path):
    ops.write(tmp_path / "x.ops", [ops.verify("/m"), ops.create("f", 0o644), ops.verify("/m")])
    with pytest.raises(UserError, match="two verify operations have the manifest '/m'"):
        list(manifest.asked_for(tmp_path / "x.ops"))


def test_a_folder_that_is_not_empty(folder, capsys):
    (folder / "kept").touch()
    status, _, err = call(capsys, "create-unlink", "--directory", folder)
    assert (status, err.count("\n")) == (1, 1)
    assert "must be an empty folder" in err


def test_a_core_that_breaks_off_is_the_machines_error(folder, capsys):
    status, _, err = call(capsys, "fault", "--directory", folder, "-p", "kind=exit")
    assert status == 2
    # Before it: hello, space, and of the first phase its record, its operations, its space.
    said = "no-result: the guest ended without its end record; the last record was number 4, space"
    assert err == f"fsexp: the core ended with status 0: {said}\n"


def test_a_core_that_was_not_built(folder, tmp_path):
    with pytest.raises(UserError, match="there is no core at"):
        native.run(tmp_path / "none", "create-unlink", {}, folder)


def test_values_are_read_as_in_a_configuration():
    assert native.given(["a=5", "b=x y", "c=[1, 2]", "d=true", "e=1=2"]) == {
        "a": 5, "b": "x y", "c": [1, 2], "d": True, "e": "1=2",
    }  # fmt: skip
