"""The kinds of kernels: from a source of the configuration to a kernel's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fsexp import kernel, whole
from fsexp.errors import UserError
from fsexp.kernel import binary, build, debian, folder, image, modules, source

# Of a source's keys, those that say to a reader where it came from.
_SHOWN = ("release", "url", "path", "repository", "suite", "package", "snapshot")


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
    own = Path(spec["config"]) if spec.get("config") else None
    recipe = build.Recipe(own, tuple(map(Path, spec.get("fragments", ()))), spec.get("compiler", "gcc"))
    built = build.build(found, recipe, cache, jobs)
    shown = {name: spec[name] for name in _SHOWN if name in spec}
    return _filled(built, {**found.identity, **shown, "kind": spec["kind"]}, recipe, output)


def _filled(built: Path, origin: dict[str, Any], recipe: build.Recipe, output: Path) -> dict[str, Any]:
    said = json.loads((built / "built.json").read_text(encoding="utf-8"))
    try:
        booted = image.bootable((built / "bzImage").read_bytes())
    except UserError as error:
        raise UserError(f"{built / 'bzImage'}, which was built here: {error}") from error
    modular = built / "modules"
    with whole.folder(output) as fresh:
        description = folder.fill(
            fresh,
            origin,
            booted,
            (built / "config").read_bytes(),
            binary.candidates(modular) if modular.is_dir() else {},
            modules.builtin_in((built / "modules.builtin").read_text(encoding="utf-8")),
        )
        description["build"] = {
            **{name: said[name] for name in ("version", "compiler", "binutils", "adaptations", "options_lacking")},
            "configuration": "common" if recipe.config is None else "own",
            "fragments": len(recipe.fragments),
        }
        kernel.write_description(fresh, description)
    return description
