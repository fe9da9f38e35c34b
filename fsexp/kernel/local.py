"""What of this machine a kernel is made from: cheap enough to be asked at every start of Snakemake."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fsexp import digest


def fingerprint(spec: dict[str, Any], leave_out: Iterable[Path] = ()) -> str:
    """A digest that differs when files of this machine that the kernel is made from do.

    Of a source tree it takes names, sizes and times of change, which is quick; what is built goes by content.
    leave_out: folders of the study, which may lie in such a tree.
    """
    named = [spec.get("config"), spec.get("file"), *spec.get("fragments", ())]
    files = [digest.of_file(Path(path)) if path and Path(path).is_file() else None for path in named]
    own = {str(Path(folder).resolve()) for folder in leave_out}
    folders = [_quick(Path(path), own) for path in (spec.get("path"), spec.get("modules")) if path]
    return digest.of_value([files, folders])


def _quick(folder: Path, leave_out: set[str]) -> str:
    rows = []
    for place, folders, names in os.walk(folder):
        within = os.path.realpath(place)
        folders[:] = sorted(name for name in folders if name != ".git" and f"{within}/{name}" not in leave_out)
        for name in sorted(names):
            said = Path(place, name).lstat()
            rows.append([place, name, said.st_size, said.st_mtime_ns])
    return digest.of_value(rows)
