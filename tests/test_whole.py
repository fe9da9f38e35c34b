import json

import pytest
from test_config import GOOD

from fsexp import cli, userland, whole
from fsexp.errors import UserError


def make(output, *names):
    with whole.folder(output) as fresh:
        for name in names:
            (fresh / name).touch()


def names(folder):
    return {path.name for path in folder.iterdir()} - {whole.MARKER}


@pytest.mark.parametrize("before", ["absent", "empty", "full"])
def test_the_output_is_replaced_as_a_whole(tmp_path, before):
    output = tmp_path / "deep" / "out"
    if before == "empty":
        output.mkdir(parents=True)
    if before == "full":
        make(output, "old")
    with whole.folder(output) as fresh:
        (fresh / "new").touch()
        assert fresh != output
    assert names(output) == {"new"}
    assert [path.name for path in output.parent.iterdir()] == ["out"]
    assert output.stat().st_mode & 0o777 == 0o755


def test_after_an_exception_nothing_has_changed(tmp_path):
    with pytest.raises(KeyError), whole.folder(tmp_path / "out") as fresh:
        (fresh / "half").touch()
        raise KeyError
    assert not list(tmp_path.iterdir())


def test_what_is_gone_of_ours_is_no_hindrance(tmp_path):
    # Snakemake removes a rule's outputs before it calls the command.
    make(tmp_path / "out", "kernel.json", "image")
    (tmp_path / "out" / "kernel.json").unlink()
    make(tmp_path / "out", "kernel.json")
    assert names(tmp_path / "out") == {"kernel.json"}


@pytest.mark.parametrize("marked", [False, True])
def test_what_is_not_ours_is_never_removed(tmp_path, marked):
    output = tmp_path / "home"
    if marked:
        make(output, "image")
    else:
        output.mkdir()
    (output / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"home would be replaced .* \(thesis\.tex\)"):
        make(output, "image")
    assert (output / "thesis.tex").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_what_came_while_it_was_made_stays(tmp_path):
    output = tmp_path / "out"
    with pytest.raises(UserError, match="late"), whole.folder(output) as fresh:
        (fresh / "image").touch()
        output.mkdir()
        (output / "late").touch()
    assert names(output) == {"late"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_marker_that_is_damaged_owns_nothing(tmp_path):
    make(tmp_path / "out", "image")
    (tmp_path / "out" / whole.MARKER).write_text("[]")
    with pytest.raises(UserError, match="image"):
        make(tmp_path / "out", "image")


def test_a_file_in_its_place(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(UserError, match="is a file"):
        make(tmp_path / "out")


@pytest.mark.parametrize(
    "words", [["kernel", "debian-6.1"], ["kernel", "--maker"], ["userland", "btrfs-progs+e2fsprogs"]]
)
def test_the_commands_leave_a_users_folder_alone(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(json.dumps(GOOD))
    monkeypatch.setattr("fsexp.apt.pinned", lambda *_: [])
    monkeypatch.setattr(userland, "entries", lambda _: {})
    (tmp_path / "thesis.tex").write_text("years of work")
    assert cli.main([*words, "--output", str(tmp_path / f"{words[0]}.json")]) == 1
    assert "thesis.tex" in capsys.readouterr().err
    assert names(tmp_path) >= {"thesis.tex", "config.yaml"}
