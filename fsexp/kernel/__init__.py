"""Kernels: a bootable image, its configuration and the modules that experiments need."""

import json
from pathlib import Path

from fsexp import digest
from fsexp.errors import UserError

FORMAT = 1


class ModuleMissing(UserError):
    """A kernel has the module neither as a file nor, as far as is known, built in. `name` is the module's name."""

    def __init__(self, name: str, release: str = "this kernel", builtin_unknown: bool = False) -> None:
        lacking = f"{release} has no module {name}"
        if builtin_unknown:
            super().__init__(
                f"{lacking} as a file, and whether it has that built in is not known: name its configuration, or a "
                "folder of modules with modules.builtin."
            )
        else:
            super().__init__(f"{lacking}, neither as a file nor built in.")
        self.name = name


def write_description(directory: Path, description: dict) -> None:
    text = json.dumps(description, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (directory / "kernel.json").write_text(text, encoding="utf-8")


def content_digest(description: dict) -> str:
    """The digest that a kernel is known by: over its image, configuration and modules."""
    lines = [f"image {description['image']['sha256']}", f"config {description['config']['sha256'] or '-'}"]
    lines += [f"module {name} {module['sha256']}" for name, module in sorted(description["modules"].items())]
    return digest.of_bytes("".join(line + "\n" for line in lines).encode())
