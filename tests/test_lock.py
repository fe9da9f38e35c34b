import json
import re
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "is damaged at line 1"),
        (b'{"format": 1,\n "entries": {\n', "is damaged at line 3"),
        (b"\xff", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "is no lock file of format 1"),
        (b'{"entries": {}}', "is no lock file of format 1"),
        (b'{"format": 2, "entries": {}}', "is no lock file of format 1"),
        (b'{"format": 1}', "has no entries"),
        (b'{"format": 1, "entries": []}', "has no entries"),
        (b'{"format": 1, "entries": {"k": []}}', "has no entries"),
    ],
)
def test_what_is_no_lock_file(tmp_path, text, problem):
    path = tmp_path / "x.lock"
    path.write_bytes(text)
    with pytest.raises(UserError) as caught:
        lock.read(path)
    said = str(caught.value)
    assert str(path) in said and problem in said
    assert said.endswith("; mend it, take it from where the study is kept, or remove it to pin what is current")
    # The words of Python's own parser help nobody to mend it.
    assert not re.search(r"Expecting|char \d|codec|NoneType|'format'", said)


def _put(path, number):
    lock.put(path, f"key {number}", {"packages": [{"package": str(number)}]})


def test_writers_at_once_lose_nothing(tmp_path):
    path = tmp_path / "x.lock"
    with ProcessPoolExecutor(4) as pool:
        list(pool.map(_put, [path] * 24, range(24)))
    assert len(lock.read(path)) == 24
