"""Git repositories: the files of a commit, and the files of a checkout that are source.

A commit's files are read as they are stored, not through `git archive` or a checkout: those follow attributes and
settings (export-ignore, export-subst, autocrlf, filters) and give other bytes than the ones that the commit names.
Nothing is written to a repository of the user's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from fsexp import digest, lock
from fsexp.errors import MachineError, UserError
from fsexp.kernel.tree import Entry

_KINDS = {b"100644": "file", b"100664": "file", b"100755": "program", b"120000": "link"}
_FULL = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ABBREVIATED = re.compile(r"[0-9a-f]{4,63}")
# A scheme, or scp's host:path, which has no slash before the colon.
_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://|[^/:]+:", re.IGNORECASE)

# What changes the answers without being in the repository (`git rev-parse --local-env-vars`, and hooks set them).
_LOCAL = (
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_COMMON_DIR",
    "GIT_NAMESPACE", "GIT_LITERAL_PATHSPECS", "GIT_ATTR_SOURCE",
)  # fmt: skip

# The user's ignored files are not the project's. A tree that is going to be built is trusted, whoever owns it; a
# program that watches it has nothing to add.
_SETTINGS = ("safe.directory=*", "core.excludesFile=/dev/null", "core.fsmonitor=false", "core.quotePath=false")

# Below 1000 bytes a second for a minute a transfer counts as dead.
_NETWORK = ("http.lowSpeedLimit=1000", "http.lowSpeedTime=60", "gc.auto=0")


class Repository:
    """A repository on this machine. Raises UserError where the path is none."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        # A folder inside some other repository is not that repository.
        self._environment = {**_environment(), "GIT_CEILING_DIRECTORIES": str(self.path.resolve().parent)}
        if not self.path.is_dir():
            raise UserError(f"{path} is not there, or is not a folder: no git repository can be read from it.")
        self._run("rev-parse", "--git-dir", trouble=f"{path} is no git repository")

    def commit(self, name: str) -> str | None:
        """The full hash of the commit that a hash, tag or branch stands for; None where there is none."""
        done = self._call("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        found = done.stdout.decode().strip()
        if done.returncode == 0 and _FULL.fullmatch(found):
            return found
        if b"ambiguous" in done.stderr:
            raise UserError(f"{self.path}: the commit {name} is ambiguous; write more of its digits.")
        return None

    def file(self, commit: str, path: str) -> bytes | None:
        """A file of a commit; None where it has none of that path."""
        done = self._call("cat-file", "blob", f"{commit}:{path}")
        return done.stdout if done.returncode == 0 else None

    def has(self, commit: str, path: str) -> bool:
        """Whether a commit has a file of that path."""
        return self._call("cat-file", "-e", f"{commit}:{path}").returncode == 0

    def entries(self, commit: str) -> Iterator[Entry]:
        """The files of a commit. Submodules are left out. MachineError where an object is missing or damaged."""
        listed = self._run("ls-tree", "-r", "-z", "--full-tree", commit, trouble=f"{self.path} is damaged")
        rows = [re.fullmatch(rb"(\d+) blob (\w+)\t(.+)", row, re.DOTALL) for row in listed.split(b"\0") if row]
        wanted = [(os.fsdecode(row[3]), _KINDS.get(row[1], "file"), row[2]) for row in rows if row]
        yield from self._contents(wanted)

    def _contents(self, wanted: list[tuple[str, str, bytes]]) -> Iterator[Entry]:
        process = subprocess.Popen(
            [*self._command(), "cat-file", "--batch"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment,
        )  # fmt: skip
        with process:
            try:
                # In parts: git answers while it is asked, and both pipes would fill up.
                for start in range(0, len(wanted), 100):
                    part = wanted[start : start + 100]
                    process.stdin.write(b"".join(name + b"\n" for _, _, name in part))
                    process.stdin.flush()
                    for path, kind, name in part:
                        yield Entry(path, kind, self._content(process.stdout, name))
            except BrokenPipeError:
                raise MachineError(
                    f"{self.path} can't be read; git says: {_complaint(process.stderr.read())}"
                ) from None
            finally:
                process.kill()

    def _content(self, answers: object, name: bytes) -> bytes:
        header = answers.readline().split()
        if len(header) != 3 or header[0] != name:
            raise MachineError(
                f"{self.path} has no object {name.decode()}, which the commit needs; is it a partial clone?"
            )
        data = answers.read(int(header[2]) + 1)
        if len(data) != int(header[2]) + 1:
            raise MachineError(f"{self.path} can't be read: the object {name.decode()} was cut short.")
        return data[:-1]

    def checkout(self) -> tuple[list[str], list[str]]:
        """The paths in the working tree that the index has, and those that are new and not ignored."""
        trouble = f"the files of the checkout {self.path} can't be listed"
        listed = [
            self._run("ls-files", "-z", kind, "--exclude-standard", trouble=trouble)
            for kind in ("--cached", "--others")
        ]
        tracked, others = ([os.fsdecode(path) for path in out.split(b"\0") if path] for out in listed)
        # Another repository inside is listed as a folder, with a slash.
        return sorted(set(tracked)), sorted(path for path in others if not path.endswith("/"))

    def _command(self) -> list[str]:
        return ["git", *_options(_SETTINGS), "-C", str(self.path)]

    def _call(self, *arguments: str) -> subprocess.CompletedProcess:
        return _git([*self._command(), *arguments], self._environment)

    def _run(self, *arguments: str, trouble: str) -> bytes:
        done = self._call(*arguments)
        if done.returncode:
            raise UserError(f"{trouble}; git says: {_complaint(done.stderr)}")
        return done.stdout


def is_remote(repository: str) -> bool:
    """Whether the repository is named by an address, not by a path."""
    return _REMOTE.match(repository) is not None and not repository.startswith("file://")


def local(repository: str) -> Repository:
    """The repository at a path or a file:// address."""
    return Repository(Path(repository.removeprefix("file://")).expanduser())


def remote(address: str, name: str, cache: Path) -> tuple[Repository, str]:
    """The commit of a repository elsewhere, with no more of its history: the cached repository, and its full hash.

    `name` is a full hash, a tag or a branch, or digits that a tag or branch of the repository begins with. With the
    commit in the cache no network is used.
    """
    folder = Path(cache) / "git" / digest.of_bytes(address.encode())[:16]
    folder.mkdir(parents=True, exist_ok=True)
    with lock.held(folder.with_name(f".{folder.name}.guard")):
        if not (folder / "HEAD").exists():
            _must(["git", "init", "--quiet", "--bare", str(folder)], f"{folder} can't be made")
        repository = Repository(folder)
        full = name if _FULL.fullmatch(name) else _advertised(address, name)
        if repository.commit(full) is None:
            _fetch(repository, address, full)
        found = repository.commit(full)
    if found is None:
        raise UserError(f"{address}: {name} is no commit.")
    return repository, found


def _advertised(address: str, name: str) -> str:
    """What a repository elsewhere says that a tag, a branch or the beginning of a hash stands for."""
    out = _must([*_network(), "ls-remote", "--", address], f"{address} can't be asked for {name}")
    rows = dict(reversed(line.split("\t", 1)) for line in out.decode().splitlines() if "\t" in line)
    for reference in (name, f"refs/{name}", f"refs/tags/{name}", f"refs/heads/{name}"):
        if reference in rows:
            return rows.get(reference + "^{}", rows[reference])
    begun = {found for found in rows.values() if _ABBREVIATED.fullmatch(name) and found.startswith(name)}
    if len(begun) == 1:
        return begun.pop()
    which = "more than one tag or branch" if begun else "no tag or branch"
    raise UserError(f"{address} has {which} that is or begins with {name}; write all 40 digits of the commit's hash.")


def _fetch(repository: Repository, address: str, full: str) -> None:
    done = _git(
        [*_network(), "-C", str(repository.path), "fetch", "--quiet", "--depth", "1", "--no-tags",
         "--no-write-fetch-head", "--", address, f"{full}:refs/fsexp/{full}"],
        _environment(isolated=False),
    )  # fmt: skip
    if done.returncode == 0:
        return
    said = _complaint(done.stderr)
    if re.search(r"not our ref|unadvertised object|couldn't find remote ref", done.stderr.decode(errors="replace")):
        raise UserError(
            f"{address} has no commit {full}, or gives out none that no tag or branch points to (git says: {said}); "
            "clone it and name the clone's path as the repository."
        )
    raise MachineError(
        f"The commit {full} can't be fetched from {address}; git says: {said} "
        "A clone made elsewhere can be named as the repository by its path."
    )


def _network() -> list[str]:
    return ["git", *_options(_NETWORK)]


def _options(settings: tuple[str, ...]) -> list[str]:
    return [word for setting in settings for word in ("-c", setting)]


def _must(command: list[str], trouble: str) -> bytes:
    done = _git(command, _environment(isolated=False))
    if done.returncode:
        raise MachineError(f"{trouble}; git says: {_complaint(done.stderr)}")
    return done.stdout


def _git(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    try:
        # In a session of its own there is no terminal that ssh could ask for a password on.
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, start_new_session=True, check=False
        )
    except FileNotFoundError:
        raise UserError("git is not installed: apt-get install git") from None


def _environment(isolated: bool = True) -> dict[str, str]:
    """The environment for git. Isolated, no settings of the user or the machine are read: for what reads contents.

    Transport needs them (proxies, addresses that stand for others, keys) and can't change what a hash names.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _LOCAL}
    kept |= {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1"}
    if isolated:
        kept |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
    return kept


def _complaint(stderr: bytes) -> str:
    """The line of git's words that says most, as a sentence."""
    lines = [line.strip() for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1] if lines else "nothing")
    said = re.sub(r"^(fatal|error): ", "", said)
    return said if said.endswith(".") else said + "."
