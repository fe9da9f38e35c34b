"""What of this machine a kernel is made from."""

import os

import pytest

from fsexp.kernel import local


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "linux" / "results").mkdir(parents=True)
    (tmp_path / "linux" / "Makefile").write_text("VERSION = 6\n")
    return tmp_path / "linux"


def asked(tree):
    return local.fingerprint({"kind": "tree", "path": str(tree)}, [tree / "results"])


def test_a_changed_or_touched_file_of_the_tree_changes_it(tree):
    before = asked(tree)
    assert asked(tree) == before
    os.utime(tree / "Makefile", ns=(1, 1))
    assert asked(tree) != before


def test_results_inside_the_tree_do_not(tree):
    before = asked(tree)
    (tree / "results" / "kernel.json").write_text("{}")
    assert asked(tree) == before
    (tree / "new.c").write_text("")
    assert asked(tree) != before


def test_the_content_of_a_fragment_changes_it(tmp_path):
    fragment = tmp_path / "own.config"
    fragment.write_text("CONFIG_A=y\n")
    before = local.fingerprint({"kind": "git", "fragments": [str(fragment)]})
    fragment.write_text("CONFIG_B=y\n")
    assert local.fingerprint({"kind": "git", "fragments": [str(fragment)]}) != before
