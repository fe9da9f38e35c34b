"""What a run is made from, without booting it."""

import json
import zlib

import pytest
from test_config import GOOD

from fsexp import config, ops, run
from fsexp.errors import UserError


def study(folder):
    return config.validate(GOOD | {"cache": str(folder / "cache")})


def stream(folder, *operations):
    path = folder / "x.ops"
    ops.write(path, operations)
    return path


def test_the_manifest_of_a_stream_is_kept_by_its_content(tmp_path):
    path = stream(tmp_path, ops.mkdir("a", 0o755), ops.create("a/b", 0o644), ops.verify("/fsexp/manifest"))
    made = run._manifests(study(tmp_path), path)
    assert made == {
        "/fsexp/manifest": f"fsexp-manifest\t1\t2\na\td\t0755\t0\t-\na/b\tf\t0644\t0\t{zlib.crc32(b''):08x}\n"
    }
    (kept,) = (tmp_path / "cache" / "manifests").iterdir()
    kept.write_text(json.dumps({"/fsexp/manifest": "kept"}))
    assert run._manifests(study(tmp_path), path) == {"/fsexp/manifest": "kept"}
    kept.write_text("{")
    assert run._manifests(study(tmp_path), path) == made
    # Another stream has another.
    other = stream(tmp_path, ops.mkdir("c", 0o755), ops.verify("/fsexp/manifest"))
    assert "c\td" in run._manifests(study(tmp_path), other)["/fsexp/manifest"]


def test_what_follows_the_last_comparison_needs_no_telling(tmp_path):
    path = stream(tmp_path, ops.mkdir("a", 0o755), ops.verify("/fsexp/manifest"), ops.command(["touch", "x"]))
    assert list(run._manifests(study(tmp_path), path)) == ["/fsexp/manifest"]


def test_most_streams_need_none(tmp_path):
    assert run._manifests(study(tmp_path), stream(tmp_path, ops.mkdir("a", 0o755))) == {}


@pytest.mark.parametrize(
    "content", [b"", b"FSEXPOPS", ops.unlink("nothing") + ops.verify("/fsexp/manifest")], ids=["empty", "cut", "fails"]
)
def test_what_the_guest_has_to_tell_is_left_to_it(tmp_path, content):
    path = stream(tmp_path, content)
    if not content or content == b"FSEXPOPS":
        path.write_bytes(content)
    assert run._manifests(study(tmp_path), path) == {}
    assert not (tmp_path / "cache").exists()


def test_a_tree_that_can_not_be_told(tmp_path):
    path = stream(tmp_path, ops.command(["touch", "x"]), ops.verify("/fsexp/manifest"))
    with pytest.raises(UserError, match="can't be told from the stream"):
        run._manifests(study(tmp_path), path)
