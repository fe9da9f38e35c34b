"""A kernel's folder as runs read it: `image`, `config`, `modules/*.ko`, and `kernel.json` that describes them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from fsexp import digest, kernel
from fsexp.errors import UserError
from fsexp.kernel import modules
from fsexp.kernel.image import Bootable


def fill(
    output: Path,
    source: dict,
    booted: Bootable,
    config: bytes | None,
    candidates: Mapping[str, modules.Candidate],
    builtin: Iterable[str] | None,
) -> dict:
    """Write the kernel into the empty folder `output` and return its description.

    source: where it comes from, as the description is to say it. config: the kernel's configuration, None
    where it isn't known. candidates: the modules it offers, of which those that are wanted are kept. builtin:
    names of what it has built in, None where that isn't known. UserError when a module is for another kernel.
    """
    selection = modules.select(candidates, builtin or ())
    (output / "image").write_bytes(booted.data)
    (output / "modules").mkdir()
    described = {}
    for name, module in selection.modules.items():
        if module.vermagic.split(" ", 1)[0] != booted.release:
            says = module.vermagic.strip() or "nothing"
            raise UserError(f"The module {name} is for another kernel than {booted.release}: it says {says}.")
        file = f"modules/{name}.ko"
        (output / file).write_bytes(module.data)
        described[name] = {
            "file": file,
            "sha256": digest.of_bytes(module.data),
            "bytes": len(module.data),
            "depends": module.depends,
            "softdeps": module.softdeps,
            "aliases": module.aliases,
        }
    description = {
        "format": kernel.FORMAT,
        "release": booted.release,
        "image": {
            "file": "image",
            "format": booted.format,
            "bytes": len(booted.data),
            "sha256": digest.of_bytes(booted.data),
            "compression": booted.compression,
        },
        "config": _config(output, config),
        "modules": described,
        "builtin": sorted(builtin or ()),
        "lacking": selection.lacking,
        "source": source,
    }
    if builtin is None:
        description["builtin_unknown"] = True
    description["digest"] = kernel.content_digest(description)
    kernel.write_description(output, description)
    return description


def _config(output: Path, config: bytes | None) -> dict:
    if config is None:
        return {"file": None, "sha256": None}
    (output / "config").write_bytes(config)
    return {"file": "config", "sha256": digest.of_bytes(config)}
