import pytest

from fsexp import whole


@pytest.mark.parametrize("before", ["absent", "empty", "full"])
def test_the_output_is_replaced_as_a_whole(tmp_path, before):
    output = tmp_path / "deep" / "out"
    if before != "absent":
        output.mkdir(parents=True)
    if before == "full":
        (output / "old").mkdir()
    with whole.folder(output) as fresh:
        (fresh / "new").touch()
        assert fresh != output
    assert [path.name for path in output.iterdir()] == ["new"]
    assert [path.name for path in output.parent.iterdir()] == ["out"]
    assert output.stat().st_mode & 0o777 == 0o755


def test_after_an_exception_nothing_has_changed(tmp_path):
    with pytest.raises(KeyError), whole.folder(tmp_path / "out") as fresh:
        (fresh / "half").touch()
        raise KeyError
    assert not list(tmp_path.iterdir())
