"""A kernel from Debian's packages."""

import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tarfile import TarFile, TarInfo

from fsexp import apt, deb, digest, lock, whole
from fsexp.errors import MachineError, UserError
from fsexp.kernel import folder, image, modules

# The packages that carry a kernel: one until 6.x, later split by content. The digit tells them from
# metapackages of the same name.
PARTS = re.compile(r"linux-(image|binary|modules|base)-\d")
# It says what is built in, which the configuration says too, and goes from an archive before the signed image does.
_SPARE = re.compile(r"linux-base-\d")
# linux-source-6.1 carries a tarball, linux-source stands for one. Up to Debian 7 it was packed by bzip2.
SOURCE = re.compile(r"linux-source-\d")
_TARBALL = re.compile(r"usr/src/linux-source-[^/]+(\.tar\.\w+)")
# linux-image-amd64 stands for linux-image-6.1.0-57-amd64 or linux-image-7.3.4+deb13-amd64, and so does
# each other flavour's.
FLAVOUR = re.compile(r"linux-image-([a-z][a-z0-9-]*)")
_RELEASE = r"\d+(?:\.\d+)+(?:-rc\d+)?(?:\+[a-z0-9.]+)?(?:-\d[a-z0-9.]*)?"
_UPSTREAM = re.compile(r"(?:\d+:)?(\d+(?:\.\d+)+)(?:~rc(\d+))?")
_IMAGE = re.compile(r"boot/vmlinuz-[^/]+|usr/lib/modules/[^/]+/vmlinuz")
_CONFIG = re.compile(r"boot/config-[^/]+|usr/lib/modules/[^/]+/config")
_BUILTIN = re.compile(r"usr/lib/modules/[^/]+/modules\.builtin")
_MODULE = re.compile(r"usr/lib/modules/([^/]+)/(.*\.ko(?:\.\w+)?)")


def fetch(spec: dict, cache: Path, lock_file: Path, output: Path) -> dict:
    """Put the kernel of `spec` into the folder `output`, replacing it, and return its description.

    spec: {"suite", "package"} and optional keys as `apt.private` takes them; `package` may be a metapackage
    as linux-image-amd64. The versions come from `lock_file`, which gets an entry when it has none; packages are kept in
    `cache`/downloads. With both at hand no network is used. UserError or MachineError says why the kernel
    can't be had; `output` is then as it was.
    """
    found = _pinned(spec, cache, lock_file, PARTS)
    source = {
        "kind": "debian",
        "suite": spec["suite"],
        "package": spec["package"],
        "packages": [{name: record[name] for name in ("package", "version", "sha256", "bytes")} for record, _ in found],
    }
    if spec.get("snapshot"):
        source["snapshot"] = spec["snapshot"]
    with whole.folder(output) as fresh:
        return _unpack([path for _, path in found], source, fresh)


def key(spec: dict) -> str:
    """The name of the source in the lock file."""
    return f"debian:{spec['suite']}:{spec['package']}{apt.origin(spec)}"


def ladder(spec: dict, cache: Path, lock_file: Path) -> list[tuple[str, dict]]:
    """The kernels from one version to another, oldest first, as (version, spec of that kernel alone).

    spec: as `fetch` takes it, `package` being a flavour's metapackage, and "ladder": {"from", "to", "each"}.
    Of kernels of one version, or with `each: minor` of one x.y, the newest counts. The choice is made once
    from fresh package lists and kept in `lock_file`; from then on neither apt nor a network is needed.
    UserError when the suite has no such kernel, MachineError when it can't be asked.
    """
    rest = {name: value for name, value in spec.items() if name != "ladder"}
    ends = spec["ladder"]
    each = ends.get("each", "release")
    name = f"{key(spec)} {ends['from']}..{ends['to']} {each}"
    entry = lock.read(lock_file).get(name)
    if entry is None:
        private = apt.private(spec, [spec["suite"]], cache)
        private.update()
        entry = {"kernels": rungs(complete(private.offered("linux-")), spec["package"], ends["from"], ends["to"], each)}
        if not entry["kernels"]:
            raise UserError(
                f"Debian {spec['suite']} offers no kernel of the flavour of {spec['package']} "
                f"from {ends['from']} to {ends['to']}."
            )
        lock.put(lock_file, name, entry)
    return [(rung["version"], {**rest, "package": rung["package"]}) for rung in entry["kernels"]]


def complete(offered: list[dict[str, str]]) -> list[dict[str, str]]:
    """Of the offered packages (their fields) the kernels whose parts are offered too.

    An archive may keep a signed image for longer than the modules that belong to it.
    """
    known = {(fields["Package"], fields["Version"]): fields for fields in offered}

    def whole_one(fields: dict[str, str]) -> bool:
        parts = [(name, fields["Version"]) for name, _ in _siblings(fields, PARTS) if not _SPARE.match(name)]
        return all(part in known and whole_one(known[part]) for part in parts)

    return [fields for fields in offered if fields["Package"].startswith("linux-image-") and whole_one(fields)]


def rungs(offered: list[dict[str, str]], package: str, first: str, last: str, each: str = "release") -> list[dict]:
    """Of the offered packages (their fields) the kernels of the flavour between the versions, by version.

    Each is {"version": that of Linux, as 6.16.12, "package"}. Both ends are included, and 7.3 has all 7.3.x.
    """
    pattern = re.compile(f"linux-image-{_RELEASE}-{FLAVOUR.fullmatch(package)[1]}")
    low, high = _numbers(first), _numbers(last)
    newest: dict[tuple, tuple] = {}
    for fields in offered:
        found = _UPSTREAM.match(fields["Version"])
        if not found or not pattern.fullmatch(fields["Package"]):
            continue
        numbers = _numbers(found[1])
        version = (numbers, float(found[2] or "inf"))  # a candidate comes before its release
        if version < (low, float("inf")) or numbers[: len(high)] > high:
            continue
        # Up to 2.6 the third number was what the second is since.
        group = version if each == "release" else numbers[: 3 if numbers[0] == 2 else 2]
        rank = (version, _numbers(fields["Package"]))  # Debian counts its builds in the name
        if group not in newest or rank > newest[group][0]:
            text = found[1] + (f"-rc{found[2]}" if found[2] else "")
            newest[group] = (rank, {"version": text, "package": fields["Package"]})
    return [rung for _, rung in sorted(newest.values(), key=lambda item: item[0])]


def ascends(first: str, last: str) -> bool:
    """Whether a kernel can lie between the two versions, as `rungs` has it."""
    high = _numbers(last)
    return _numbers(first)[: len(high)] <= high


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def source_tarball(spec: dict, cache: Path, lock_file: Path) -> Path:
    """The tarball of kernel source that a linux-source package carries, in `cache`/downloads.

    spec as `fetch` takes it; `package` may be the metapackage linux-source. The lock file pins the package
    and the tarball: with the tarball at hand neither the package nor a network is needed. UserError or
    MachineError says why it can't be had.
    """
    entry = lock.read(lock_file).get(key(spec), {})
    pin = entry.get("tarball")
    if pin:
        path = Path(cache, "downloads", pin["file"])
        if path.exists() and digest.of_file(path) == pin["sha256"]:
            return path
    found = _pinned(spec, cache, lock_file, SOURCE)
    if len(found) != 1:
        raise UserError(f"The package {spec['package']} stands for {len(found)} packages of kernel source, not one.")
    record, package = found[0]
    name = _take_tarball(package, f"{record['package']}_{record['version'].split(':', 1)[-1]}")
    path = Path(cache, "downloads", name)
    sha256 = digest.of_file(path)
    if pin and pin["sha256"] != sha256:
        raise MachineError(f"{path} came out of {package.name} with another digest than {lock_file} has: try again.")
    lock.put(
        lock_file,
        key(spec),
        {"packages": [record], "tarball": {"file": path.name, "sha256": sha256, "bytes": path.stat().st_size}},
    )
    return path


def _take_tarball(package: Path, stem: str) -> str:
    """Put the tarball in a linux-source package beside it; its name, made from `stem`, is returned."""
    with deb.contents(package) as tar:
        members = [(m, _TARBALL.fullmatch(deb.installed_path(m.name))) for m in tar.getmembers() if m.isfile()]
        members = [(member, found[1]) for member, found in members if found]
        if len(members) != 1:
            raise UserError(f"The package {package.name} holds {len(members)} tarballs of kernel source, not one.")
        member, suffix = members[0]
        with whole.writing(package.with_name(stem + suffix)) as file:
            shutil.copyfileobj(tar.extractfile(member), file, 1 << 20)
    return stem + suffix


def _pinned(spec: dict, cache: Path, lock_file: Path, wanted: re.Pattern) -> list[tuple[dict, Path]]:
    private = apt.private(spec, [spec["suite"]], cache)
    return apt.pinned(key(spec), lock_file, cache, private, lambda a: choose(a.show, spec["package"], wanted))


def choose(show: Callable[[str], dict[str, str]], package: str, parts: re.Pattern = PARTS) -> list[dict]:
    """The records of the packages that make up the kernel that `package` is or stands for, by name.

    `show(package, version)` gives a package's fields, `parts` matches the names of packages with content.
    UserError when there is none.
    """
    records: dict[str, dict] = {}
    seen: set[str] = set()
    waiting: list[tuple[str, str | None]] = [(package, None)]
    while waiting:
        name, version = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            fields = show(name, version)
        except apt.NotOffered:
            if not _SPARE.match(name):
                raise
            continue
        if parts.match(name):
            records[name] = apt.record(fields)
        waiting += _siblings(fields, parts)
    if not records:
        what = "source of a kernel" if parts is SOURCE else "kernel"
        raise UserError(f"The package {package} is no {what} and stands for none.")
    return [records[name] for name in sorted(records)]


def _siblings(fields: dict[str, str], parts: re.Pattern) -> list[tuple[str, str | None]]:
    """The packages, with their versions, that belong to the kernel that a package with these fields belongs to.

    Parts of one kernel ask for each other in exactly their version. Metapackages of old releases named the kernel
    without a version.
    """
    found = []
    for alternatives in apt.dependencies(fields):
        other, relation, wanted = alternatives[0]
        same = relation == "=" and wanted == fields["Version"] and other.startswith("linux-")
        if same or (parts.match(other) and not relation):
            found.append((other, wanted or None))
    return found


def _unpack(debs: list[Path], source: dict, output: Path) -> dict:
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
        listed = any(map(_BUILTIN.fullmatch, files))
        builtin = (
            modules.builtin_in(only(_BUILTIN, "modules.builtin").decode()) if listed else modules.builtin_by(config)
        )
        candidates = {}
        for path in files:
            found = _MODULE.fullmatch(path)
            name = found and modules.name_of(path)
            if name and found[1] == booted.release:
                candidates[name] = modules.Candidate(found[2], lambda path=path: read(path))
        return folder.fill(output, source, booted, config, candidates, builtin)
