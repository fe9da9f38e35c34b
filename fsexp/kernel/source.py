"""Where a kernel's source tree comes from: a release's tarball, a folder, a commit; and the patches on top of it.

Entries in the lock file: `tarball:RELEASE` or `tarball:URL` with the files that were taken, the tarball first and then
the release's own patches; `git:REPOSITORY:COMMIT` with the full hash. A folder is not locked: it is there to change.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache as once
from pathlib import Path

import yaml

from fsexp import compression, digest, fetch, lock
from fsexp.errors import UserError
from fsexp.kernel import debian, git, patch, tree
from fsexp.kernel.tree import Entry

TARBALLS = Path(__file__).parents[2] / "vmimages" / "kernels" / "tarballs.yaml"


@dataclass(frozen=True)
class Source:
    """A kernel's source.

    identity: JSON that differs when the tree's content does. release: its version as the Makefile says it, or None
    where a patch changes that. place: fills an empty folder with the patched tree.
    """

    identity: dict
    release: str | None
    place: Callable[[Path], None]


def obtain(spec: dict, cache: Path, lock_file: Path, leave_out: Iterable[Path] = ()) -> Source:
    """The source that `spec` names; what can be fetched is in the cache afterwards.

    spec: {"kind": "tarball", "release" or "url" and "sha256"}, {"kind": "tree", "path"}, {"kind": "git",
    "repository", "commit"} or {"kind": "debian", ...} as debian.source_tarball takes it; with "patches":
    [{"url", "sha256"}] (optional), which are applied in their order.
    leave_out: files and folders of the study, which are no part of a source tree that they lie in; the cache and the
    lock file's folder are left out as well. Raises UserError or MachineError, saying why it can't be had.
    """
    study = [*map(Path, leave_out), Path(cache), Path(lock_file)]
    made = KINDS[spec["kind"]](spec, Path(cache), Path(lock_file), study)
    return patched(made, _fetched(spec.get("patches") or (), Path(cache)))


def patched(source: Source, patches: Sequence[tuple[Path, str]]) -> Source:
    """The source with patches, each a file and its sha256, on top of those that it has."""
    if not patches:
        return source

    def place(folder: Path) -> None:
        source.place(folder)
        for path, _ in patches:
            patch.apply(path, folder)

    sums = [*source.identity.get("patches", ()), *(sha256 for _, sha256 in patches)]
    version = None if any(patch.touches(path, "Makefile") for path, _ in patches) else source.release
    return replace(source, identity={**source.identity, "patches": sums}, release=version, place=place)


def _fetched(rows: Iterable[dict], cache: Path) -> list[tuple[Path, str]]:
    return [(fetch.file(row["url"], row["sha256"], cache), row["sha256"]) for row in rows]


def _pin(lock_file: Path, key: str, entry: dict) -> None:
    if lock.read(lock_file).get(key) != entry:
        lock.put(lock_file, key, entry)


def archive(path: Path, sha256: str) -> Source:
    """The source in a tarball on this machine, whose digest is known. UserError where it holds no kernel."""
    top, release = _kernel_in(path)

    def place(folder: Path) -> None:
        with compression.opened(path) as plain:
            tree.write(tree.unpacked(plain, path, top), folder, path.name)

    return Source({"kind": "tarball", "sha256": sha256}, release, place)


def _kernel_in(path: Path) -> tuple[str, str]:
    """The folder inside a tarball that holds a kernel's source, and the kernel's version."""
    kconfig, releases = set(), {}
    with compression.opened(path) as plain:
        for entry in tree.members(plain, path):
            found = re.fullmatch(r"(?:([^/]+)/)?(Makefile|Kconfig|init/Kconfig)", entry.path)
            if found and found[2] == "Makefile":
                releases[found[1] or ""] = tree.read_release(entry.content.decode(errors="replace"))
            elif found:
                kconfig.add(found[1] or "")
            for top, release in releases.items():
                if release and top in kconfig:
                    return top, release
    raise UserError(f"{path} holds no kernel's source: there is no Makefile with a VERSION beside a Kconfig in it.")


def _tarball(spec: dict, cache: Path, lock_file: Path, study: list[Path]) -> Source:
    if spec.get("release") is None:
        rows = [{"url": spec["url"], "sha256": spec["sha256"]}]
        key = f"tarball:{spec['url']}"
    else:
        key = f"tarball:{spec['release']}"
        entry = lock.read(lock_file).get(key)
        rows = entry["files"] if entry else _release(str(spec["release"]), cache)
    (path, sha256), *patches = _fetched(rows, cache)
    made = patched(archive(path, sha256), patches)
    _pin(lock_file, key, {"files": rows})
    return replace(made, release=str(spec["release"])) if patches else made


def _debian(spec: dict, cache: Path, lock_file: Path, study: list[Path]) -> Source:
    path = debian.source_tarball(spec, cache, lock_file)
    return archive(path, digest.of_file(path))


def releases() -> dict[str, dict]:
    """The releases that are shipped with their digests: {"tarballs": [alternatives], "patches": [in their order]}.

    Each file is {"url", "sha256", "source"}, `source` being who published the digest.
    """
    return _shipped(TARBALLS)


@once
def _shipped(path: Path) -> dict[str, dict]:
    table = yaml.safe_load(path.read_text(encoding="utf-8"))
    for entry in table["releases"].values():
        for row in [*entry["tarballs"], *entry.get("patches", ())]:
            row["url"] = table["upstream"] + row.pop("file")
    return table["releases"]


def unknown_release(name: str) -> str:
    """Why the digest of that release is not known here, and what to do; empty where it is known."""
    known = releases()
    if name in known:
        return ""
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}."
    return f"The digest of Linux {name} is not known here; give the tarball's url and sha256, or {hint}"


def _release(name: str, cache: Path) -> list[dict]:
    """The files of a shipped release: of the tarballs that hold it the one that lies in the cache, or the first."""
    known = releases()
    if problem := unknown_release(name):
        raise UserError(problem)
    entry = known[name]
    tarball = next((row for row in entry["tarballs"] if fetch.at_hand(row["url"], row["sha256"], cache)), None)
    chosen = [tarball or entry["tarballs"][0], *entry.get("patches", ())]
    return [{"url": row["url"], "sha256": row["sha256"]} for row in chosen]


def _tree(spec: dict, cache: Path, lock_file: Path, study: list[Path]) -> Source:
    folder = Path(spec["path"]).expanduser()
    if not folder.is_dir():
        raise UserError(f"The kernel's source {folder} is not there, or is not a folder.")
    release = tree.release(folder)
    if release is None:
        raise UserError(f"{folder} is no kernel's source: there is no Makefile with a VERSION beside a Kconfig in it.")
    absent = _of_the_study(folder, study, lock_file)
    known = tree.content(_files(folder, absent))

    def place(target: Path) -> None:
        if tree.write(_files(folder, [*absent, target]), target, str(folder)) != known:
            raise UserError(f"{folder} changed while it was copied; start again when nothing writes to it.")

    return Source({"kind": "tree", "sha256": known}, release, place)


def _of_the_study(folder: Path, study: list[Path], lock_file: Path) -> list[Path]:
    """What belongs to the study and not to the source that it may lie in: all of its folder, if that is below."""
    own = lock_file.resolve().parent
    if folder.resolve() in own.parents:
        return [*study, own]
    return [*study, *own.glob("*.lock"), *own.glob(".*.guard"), own / ".snakemake", own / ".run.lock"]


def _files(folder: Path, absent: Iterable[Path]) -> Iterator[Entry]:
    """The source files of a folder: what its git knows and does not ignore, or what no build leaves."""
    if not (folder / ".git").exists():
        return tree.entries(folder, tree.listing(folder, absent))
    return tree.entries(folder, tree.checked_out(folder, *git.Repository(folder).checkout(), absent))


def _git(spec: dict, cache: Path, lock_file: Path, study: list[Path]) -> Source:
    named, name = str(spec["repository"]), str(spec["commit"])
    key = f"git:{named}:{name}"
    entry = lock.read(lock_file).get(key)
    wanted = entry["commit"] if entry else name
    if git.is_remote(named):
        repository, commit = git.remote(named, wanted, cache)
    else:
        repository = git.local(named)
        commit = repository.commit(wanted)
    if commit is None:
        raise UserError(f"The git repository {named} has no commit {wanted}.")
    makefile = repository.file(commit, "Makefile")
    release = makefile and tree.read_release(makefile.decode(errors="replace"))
    if not release or not any(repository.has(commit, path) for path in tree.KCONFIG):
        raise UserError(
            f"The commit {name} of {named} holds no kernel's source: no Makefile with a VERSION and a Kconfig."
        )
    _pin(lock_file, key, {"commit": commit})

    def place(folder: Path) -> None:
        files = (entry for entry in repository.entries(commit) if not tree.foreign(entry.path))
        tree.write(files, folder, f"{named} at {commit[:12]}")

    return Source({"kind": "git", "commit": commit}, release, place)


# Each kind's maker: (spec, cache, lock file, what belongs to the study) -> Source, without the spec's patches.
KINDS: dict[str, Callable[[dict, Path, Path, list[Path]], Source]] = {
    "tarball": _tarball,
    "tree": _tree,
    "git": _git,
    "debian": _debian,
}
