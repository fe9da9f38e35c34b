"""A kernel that somebody built: its image, and its modules and its configuration where they are named."""

import os
import re
from pathlib import Path

from fsexp import digest, whole
from fsexp.errors import UserError
from fsexp.kernel import folder, image, modules


def fetch(spec: dict, output: Path) -> dict:
    """Put the kernel of `spec` into the folder `output`, replacing it, and return its description.

    spec: {"file": a bzImage, "modules" (optional): the folder that its modules were installed into, or that
    they lie in, "config" (optional): its configuration}, all paths. A configuration that the image carries
    (CONFIG_IKCONFIG) is found. What is built in is known from `modules.builtin` beside the modules, else from
    the configuration; where there is neither, the description says so by "builtin_unknown". UserError names
    the file that can't be used; `output` is then as it was.
    """
    file = Path(spec["file"])
    data = _read(file, "kernel image")
    try:
        booted = image.bootable(data)
        config = image.config(data)
    except UserError as error:
        raise UserError(f"{file}: {error}") from error
    if not booted.release:
        raise UserError(f"{file}: The kernel image does not say its version.")
    if spec.get("config"):
        config = _configuration(Path(spec["config"]))
    builtin = None if config is None else modules.builtin_by(config)
    offered: dict[str, modules.Candidate] = {}
    if spec.get("modules"):
        top = _top(Path(spec["modules"]), booted.release)
        offered = candidates(top)
        listed = top / "modules.builtin"
        if listed.exists():
            builtin = modules.builtin_in(listed.read_text(encoding="utf-8"))
        elif not offered:
            raise UserError(f"{top} holds neither modules (*.ko, also .gz, .xz, .zst) nor modules.builtin.")
    source = {name: str(spec[name]) for name in ("file", "modules", "config") if spec.get(name)}
    source |= {"kind": "image", "sha256": digest.of_bytes(data)}
    with whole.folder(output) as fresh:
        return folder.fill(fresh, source, booted, config, offered, builtin)


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"The {what} {path} can't be read: {error.strerror}.") from error


def _configuration(path: Path) -> bytes:
    config = _read(path, "kernel configuration")
    if not re.search(rb"^(# )?CONFIG_\w+[= ]", config, re.M):
        raise UserError(f"{path} is no kernel configuration: no line of it sets a CONFIG_ option.")
    return config


def _top(given: Path, release: str) -> Path:
    """The folder of this kernel's modules: below `given` as `make modules_install` lays it out, or `given`."""
    if not given.is_dir():
        raise UserError(f"The folder of modules {given} is not there.")
    for above in (given / "lib/modules", given / "usr/lib/modules"):
        if (above / release).is_dir():
            return above / release
        others = sorted(path.name for path in above.iterdir() if path.is_dir()) if above.is_dir() else []
        if others:
            raise UserError(f"{above} has modules of {', '.join(others)}, none of {release}, which the image is.")
    return given


def candidates(top: Path) -> dict[str, modules.Candidate]:
    """The modules in the files below a folder, by name. UserError where two files are of one name."""
    found: dict[str, Path] = {}
    for directory, folders, files in os.walk(top):
        folders.sort()
        for path in (Path(directory, file) for file in sorted(files)):
            name = modules.name_of(path.name)
            if name is None:
                continue
            first = found.setdefault(name, path)
            if first != path:
                raise UserError(f"The module {name} lies there twice: {first} and {path}. Take one of them away.")
    return {name: modules.Candidate(path.relative_to(top).as_posix(), path.read_bytes) for name, path in found.items()}
