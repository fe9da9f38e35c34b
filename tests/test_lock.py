import json
from concurrent.futures import ProcessPoolExecutor

import pytest

from fsexp import lock
from fsexp.errors import UserError


def test_no_file_is_no_entry(tmp_path):
    assert lock.read(tmp_path / "x.lock") == {}


def test_what_is_put_is_read(tmp_path):
    path = tmp_path / "deep" / "x.lock"
    lock.put(path, "b:ü", {"packages": [{"package": "p", "version": "1"}, {"package": "q", "version": "2"}]})
    lock.put(path, "a", {"packages": [], "note": "n"})
    assert list(lock.read(path)) == ["a", "b:ü"]
    assert lock.read(path)["b:ü"]["packages"][1] == {"package": "q", "version": "2"}
    assert json.loads(path.read_text())["format"] == 1
    text = path.read_text().splitlines()
    assert '"b:ü": {' in text[lock.line(path, "b:ü") - 1]
    assert sum('"package": "' in line for line in text) == 2
    assert lock.line(path, "absent") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"format": 2, "entries": {}}', '{"format": 1, "entries": []}'])
def test_what_is_no_lock_file(tmp_path, text):
    path = tmp_path / "x.lock"
    path.write_text(text)
    with pytest.raises(UserError, match=r"x\.lock"):
        lock.read(path)


def _put(path, number):
    lock.put(path, f"key {number}", {"packages": [{"package": str(number)}]})


def test_writers_at_once_lose_nothing(tmp_path):
    path = tmp_path / "x.lock"
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_put, [path] * 24, range(24)))
    assert len(lock.read(path)) == 24
