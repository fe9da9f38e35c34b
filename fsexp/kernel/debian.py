"""A kernel from Debian's packages."""

import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tarfile import TarFile, TarInfo

from fsexp import apt, deb, digest, kernel, whole
from fsexp.errors import UserError
from fsexp.kernel import image, modules

# The packages that carry a kernel: one until 6.x, later split by content. The digit tells them from
# metapackages of the same name.
_PARTS = re.compile(r"linux-(image|binary|modules|base)-\d")
_IMAGE = re.compile(r"boot/vmlinuz-[^/]+|usr/lib/modules/[^/]+/vmlinuz")
_CONFIG = re.compile(r"boot/config-[^/]+|usr/lib/modules/[^/]+/config")
_BUILTIN = re.compile(r"usr/lib/modules/[^/]+/modules\.builtin")
_MODULE = re.compile(r"usr/lib/modules/([^/]+)/(.*\.ko(?:\.\w+)?)")


def fetch(spec: dict, cache: Path, lock_file: Path, output: Path) -> dict:
    """Put the kernel of `spec` into the folder `output`, replacing it, and return its description.

    spec: {"suite", "package", "mirror" (optional)}; `package` may be a metapackage as linux-image-amd64.
    The versions come from `lock_file`, which gets an entry when it has none; packages are kept in
    `cache`/downloads. With both at hand no network is used. UserError or MachineError says why the kernel
    can't be had; `output` is then as it was.
    """
    suite, package, mirror = spec["suite"], spec["package"], spec.get("mirror")
    private = apt.PrivateApt(apt.private_root(cache, [suite], mirror), [suite], mirror)
    found = apt.pinned(key(spec), lock_file, cache, private, lambda a: choose(a.show, package))
    with whole.folder(output) as fresh:
        description = _unpack([path for _, path in found], fresh)
        description["source"] = {
            "kind": "debian",
            "suite": suite,
            "package": package,
            "packages": [
                {name: record[name] for name in ("package", "version", "sha256", "bytes")} for record, _ in found
            ],
        }
        kernel.write_description(fresh, description)
    return description


def key(spec: dict) -> str:
    """The name of the source in the lock file."""
    text = f"debian:{spec['suite']}:{spec['package']}"
    return text + (f"@{spec['mirror']}" if spec.get("mirror") else "")


def choose(show: Callable[[str], dict[str, str]], package: str) -> list[dict]:
    """The records of the packages that make up the kernel that `package` is or stands for, by name.

    `show(package, version)` gives a package's fields. UserError when none of them carries a kernel.
    """
    records: dict[str, dict] = {}
    seen: set[str] = set()
    waiting: list[tuple[str, str | None]] = [(package, None)]
    while waiting:
        name, version = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        fields = show(name, version)
        if _PARTS.match(name):
            records[name] = apt.record(fields)
        for alternatives in apt.dependencies(fields):
            other, relation, wanted = alternatives[0]
            # Parts of one kernel ask for each other in exactly their version. Metapackages of old
            # releases named the kernel without a version.
            same = relation == "=" and wanted == fields["Version"] and other.startswith("linux-")
            if same or (_PARTS.match(other) and not relation):
                waiting.append((other, wanted or None))
    if not records:
        raise UserError(f"The package {package} is no kernel and stands for none.")
    return [records[name] for name in sorted(records)]


def _unpack(debs: list[Path], output: Path) -> dict:
    with ExitStack() as stack:
        files: dict[str, tuple[TarFile, TarInfo]] = {}
        for path in debs:
            tar = stack.enter_context(deb.contents(path))
            files |= {deb.installed_path(m.name): (tar, m) for m in tar.getmembers() if m.isfile()}

        def read(path: str) -> bytes:
            tar, member = files[path]
            return tar.extractfile(member).read()

        def only(pattern: re.Pattern, what: str) -> bytes:
            paths = [path for path in files if pattern.fullmatch(path)]
            if len(paths) != 1:
                raise UserError(f"The kernel's packages hold {len(paths)} files that are {what}, not one.")
            return read(paths[0])

        booted = image.bootable(only(_IMAGE, "an image"))
        config = only(_CONFIG, "a configuration")
        builtin = {modules.name_of(line) for line in only(_BUILTIN, "modules.builtin").decode().split()} - {None}
        candidates = {}
        for path in files:
            found = _MODULE.fullmatch(path)
            name = found and modules.name_of(path)
            if name and found[1] == booted.release:
                candidates[name] = modules.Candidate(found[2], lambda path=path: read(path))
        selection = modules.select(candidates, builtin)

    (output / "modules").mkdir()
    (output / "image").write_bytes(booted.data)
    (output / "config").write_bytes(config)
    described = {}
    for name, module in selection.modules.items():
        if module.vermagic.split(" ", 1)[0] != booted.release:
            raise UserError(f"The module {name} is for another kernel than {booted.release}.")
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
        "config": {"file": "config", "sha256": digest.of_bytes(config)},
        "modules": described,
        "builtin": sorted(builtin),
        "lacking": selection.lacking,
    }
    description["digest"] = kernel.content_digest(description)
    return description
