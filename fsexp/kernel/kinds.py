"""The kinds of kernels: from a source of the configuration to a kernel's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fsexp import digest
from fsexp.errors import UserError
from fsexp.kernel import binary, build, debian, source, tree


def make(
    spec: dict[str, Any], cache: Path, lock_file: Path, output: Path, jobs: int = 1, leave_out: Iterable[Path] = ()
) -> dict[str, Any]:
    """Put the kernel of `spec` into the folder `output`, replacing it; returns what its kernel.json holds.

    spec: config.Kernel.source(), with the study's mirrors. jobs: processes that may build at once. leave_out: files
    and folders of the study, no part of a source tree that they lie in. Raises UserError or MachineError, saying why
    it can't be had, BuildFailed where its source does not build; `output` is then as it was.
    """
    if spec["kind"] == "image":
        return binary.fetch(spec, output)
    if spec["kind"] == "debian" and not spec.get("build"):
        return debian.fetch(spec, cache, lock_file, output)
    found = source.obtain(spec, cache, lock_file, leave_out)
    built = build.build(found, recipe(spec), cache, jobs)
    return binary.built(built, {"kind": spec["kind"], **found.identity}, output)


def recipe(spec: dict[str, Any]) -> build.Recipe:
    """How a kernel is configured and with what it is built."""
    own = Path(spec["config"]) if spec.get("config") else None
    return build.Recipe(own, tuple(map(Path, spec.get("fragments", ()))), spec.get("compiler", "gcc"))


def local(spec: dict[str, Any]) -> str:
    """A digest that differs when files of this machine that the kernel is made from do.

    Of a source tree it takes names, sizes and times of change, which is quick; what is built goes by content.
    """
    named = [spec.get("config"), spec.get("file"), *spec.get("fragments", ())]
    files = [digest.of_file(Path(path)) if path and Path(path).is_file() else None for path in named]
    folders = [_quick(Path(path)) for path in (spec.get("path"), spec.get("modules")) if path]
    return digest.of_value([files, folders])


def _quick(folder: Path) -> str:
    rows = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        for name in sorted(names):
            said = os.lstat(os.path.join(place, name))
            rows.append([place, name, said.st_size, said.st_mtime_ns])
    return digest.of_value(rows)
