"""Debian packages by apt, with a root of its own: the machine's packages, lists and hooks stay untouched.

apt checks the archive's signature, so a package's digest comes from a signed index. The mirror is the
one the machine's own apt uses for Debian, unless another is named, or a moment of which the archive is
wanted. A package is described by a record `{"package", "version", "sha256", "bytes", "filename"}`,
`filename` being its path in the archive.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from fsexp import digest, lock, whole
from fsexp.errors import MachineError, UserError

ARCHITECTURE = "amd64"
KEYRINGS = [
    Path("/usr/share/keyrings/debian-archive-keyring.gpg"),
    Path("/usr/share/keyrings/debian-archive-keyring.pgp"),
]
# Keys that Debian signs with no longer: what was signed by one while it was valid is still Debian's.
RETIRED_KEYRINGS = [
    Path("/usr/share/keyrings/debian-archive-removed-keys.gpg"),
    Path("/usr/share/keyrings/debian-archive-removed-keys.pgp"),
]
# Debian's archive as it was; any moment is answered by the last state before it (snapshot.debian.org).
SNAPSHOTS = "https://snapshot.debian.org/archive/{archive}/{timestamp}/"
APT_HELPER = Path("/usr/lib/apt/apt-helper")

# Releases that have no companions for updates and security.
_ALONE = {"sid", "unstable", "experimental", "rc-buggy"}
_BACKPORTS = re.compile(r"-backports(-sloppy)?$")
# Up to buster the security suite had another name.
_OLD_SECURITY = {"etch", "lenny", "squeeze", "wheezy", "jessie", "stretch", "buster"}
# Releases whose lists are renewed no more: they lie on mirrors as archive.debian.org.
_ARCHIVED = {"sarge"} | _OLD_SECURITY
_TIMESTAMP = re.compile(r"\d{8}T\d{6}Z")

# gpgv calls a signature worthless once its key has expired, even one made before that (EXPKEYSIG, see
# doc/DETAILS of GnuPG). For archived lists the time of signing decides, as it does for the sqv that apt 3
# verifies with.
_GPGV = r"""#!/bin/sh
previous= descriptor=
for word; do
  [ "$previous" = --status-fd ] && descriptor=$word
  previous=$word
done
[ -n "$descriptor" ] || exec gpgv "$@"
status=$(mktemp) || exit 2
trap 'rm -f "$status"' EXIT
eval "exec 9>&$descriptor"
eval 'gpgv "$@"' "$descriptor"'>"$status"'
code=$?
awk '
  $2 == "NEWSIG" { expiry = signed = 0 }
  $2 == "KEYEXPIRED" && (expiry == 0 || $3 < expiry) { expiry = $3 }
  $2 == "SIG_ID" { signed = $5 }
  $2 == "EXPKEYSIG" && signed > 0 && signed < expiry { $2 = "GOODSIG" }
  { print }
' "$status" >&9
exit "$code"
"""

# Settings about fetching are the machine's (proxies, retries, time limits), except those that say what
# to fetch and how to keep it, and those that would weaken the check of signatures.
_NOT_COPIED = re.compile(
    r"Acquire::(IndexTargets|Changelogs|CompressionTypes|Languages|GzipIndexes|PDiffs|cdrom|Allow)", re.I
)
_SETTING = re.compile(r'(Acquire::[^\s"]+) "(.*)";')

_SOURCE_FIELDS = ("REPO_URI", "RELEASE", "COMPONENT", "ORIGIN", "SIGNED_BY")
# What apt says of lists that are there but can't be believed.
_DISTRUSTED = re.compile(
    r"GPG error|is not signed|signatures? (?:were|was|couldn't|is|are|could not)|is expired|not valid yet|weak security"
)
_NO_SUCH_SUITE = re.compile(r" (\S+) Release' (?:does not have|no longer has) a Release file")


class NotOffered(UserError):
    """The archive doesn't have that package, or not in that version."""


class OtherDigest(NotOffered):
    """The archive has that version of the package, with other content than was asked for."""


class PrivateApt:
    """apt over the given suites, with all its state below `root`. Nothing is done before it is needed.

    With suites of which one is a backports suite, that one goes before the others. With `snapshot`, a
    moment as `timestamp` takes it, the archive is Debian's of that moment, at the address that the template
    `snapshot_mirror` makes of it, and `mirror` plays no part.
    """

    def __init__(
        self,
        root: Path,
        suites: Sequence[str],
        mirror: str | None = None,
        snapshot: str | None = None,
        snapshot_mirror: str = SNAPSHOTS,
    ) -> None:
        self.root = Path(root).resolve()
        self.suites = list(suites)
        self.mirror = mirror
        self.snapshot = snapshot and timestamp(snapshot)
        self.snapshot_mirror = snapshot_mirror
        self._held = 0
        self._prepared = False
        self._updated = False
        self._bases: list[str] = []

    # -- what is offered

    def update(self) -> bool:
        """Fetch the package lists. Returns whether they are fresh now.

        Without a network older lists are kept and the answer is False; MachineError when there are none.
        """
        with self._exclusive():
            self._prepare()
            for _ in range(4):
                done = self._call("apt-get", "update")
                absent = _NO_SUCH_SUITE.findall(done.stderr) if done.returncode else []
                if not self._drop(absent):
                    break
            missing = [suite for suite in self.suites if suite not in self._listed()]
            if missing:
                raise self._unlisted(", ".join(missing), bool(set(missing) & set(absent)), done)
            self._updated = done.returncode == 0
            return self._updated

    def _unlisted(self, suites: str, absent: bool, done: subprocess.CompletedProcess) -> Exception:
        """The error for suites that there are no lists of after an update."""
        where = f"Debian's archive of {self.snapshot}" if self.snapshot else "The mirror"
        if absent:
            return UserError(f"{where} has no Debian suite {suites}.")
        doubts = [line for line in done.stderr.splitlines() if _DISTRUSTED.search(line)]
        if doubts:
            return UserError(
                f"The package lists of Debian {suites} can't be verified, so nothing is taken from there; "
                f"apt says: {doubts[0].split(':', 1)[-1].strip()}"
            )
        what = f"The package lists of Debian {suites}" + (f" of {self.snapshot}" if self.snapshot else "")
        return MachineError(f"{what} can't be fetched; apt says: {_complaint(done)}")

    def candidate(self, package: str) -> dict:
        """The record of the version that apt would install. NotOffered when there is none."""
        return record(self.show(package))

    def show(self, package: str, version: str | None = None) -> dict[str, str]:
        """A package's fields from the signed index, of the candidate or of the given version."""
        with self._exclusive():
            self._lists()
            options = ["--no-all-versions"] if version is None else []
            done = self._call("apt-cache", "show", *options, package if version is None else f"{package}={version}")
            found = [fields for fields in stanzas(done.stdout) if fields["Package"] == package]
            if version is not None:
                found = [fields for fields in found if fields["Version"] == version]
            if not found:
                which = package if version is None else f"{package} {version}"
                raise NotOffered(f"Debian {', '.join(self.suites)} has no package {which}.")
            return found[0]

    def offered(self, prefix: str) -> list[dict[str, str]]:
        """The fields of the candidates of all packages whose names begin with `prefix`."""
        with self._exclusive():
            self._lists()
            names = self._call("apt-cache", "pkgnames", prefix).stdout.split()
            if not names:
                return []
            # Names that are only mentioned by other packages have no fields.
            return stanzas(self._call("apt-cache", "show", "--no-all-versions", *sorted(names)).stdout)

    def resolve(self, packages: Sequence[str]) -> list[dict]:
        """The records of the packages and of all they depend on, without recommendations, by name."""
        with self._exclusive():
            self._lists()
            for package in packages:
                self.show(package)  # a clear message for a name that doesn't exist
            done = self._call("apt-get", "--simulate", "install", *packages)
            if done.returncode:
                raise UserError(
                    f"Debian {', '.join(self.suites)} has no set of packages that satisfies "
                    f"{', '.join(packages)}; apt says: {_complaint(done)}"
                )
            chosen = {(n.split(":")[0], v) for n, v in re.findall(r"^Inst (\S+) \((\S+) ", done.stdout, re.M)}
            done = self._call("apt-cache", "show", *(f"{name}={version}" for name, version in sorted(chosen)))
            found = {(fields["Package"], fields["Version"]): record(fields) for fields in stanzas(done.stdout)}
            return [found[name] for name in sorted(chosen)]

    # -- packages themselves

    def download(
        self, package: str, version: str, sha256: str | None = None, *, into: Path, filename: str | None = None
    ) -> Path:
        """The package's .deb in the folder `into`, checked against `sha256` (default: the index's).

        No network when it lies there already with that digest. `filename`, its path in the archive,
        lets a version be fetched that the index no longer lists; NotOffered when it is gone altogether.
        """
        into = Path(into).resolve()
        if sha256 is not None:
            for path in into.glob(f"{package}_{version.split(':', 1)[-1]}_*.deb"):
                if digest.of_file(path) == sha256:
                    return path
        with self._exclusive():
            offered = self._find(package, version, sha256)
            if offered:
                sha256, filename = offered["sha256"], offered["filename"]
            elif other := self._offered(package, version):
                raise OtherDigest(
                    f"Debian {', '.join(self.suites)} has {package} {version} with the sha256 {other['sha256']}, "
                    f"and {sha256} was asked for: the digest differs."
                )
            elif sha256 is None or filename is None:
                raise NotOffered(f"Debian {', '.join(self.suites)} no longer offers {package} {version}.")
            into.mkdir(parents=True, exist_ok=True)
            path = into / Path(filename).name
            if path.exists() and digest.of_file(path) == sha256:  # another process was faster
                return path
            fetched = self._fetch(package, version, sha256, filename, bool(offered))
            # The cache may be another filesystem than the root: copy beside, then rename.
            partial = path.with_name(f".{path.name}.{os.getpid()}")
            try:
                shutil.move(fetched, partial)
                if digest.of_file(partial) != sha256:
                    raise MachineError(f"{path.name} was fetched damaged: its digest is not {sha256}.")
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
            return path

    def prefetch(self, records: Sequence[dict], into: Path) -> None:
        """Fetch at once what `download` would have to fetch one by one. Failures are left for it to tell."""
        into = Path(into)
        absent = [r for r in records if not (into / Path(r["filename"]).name).exists()]
        if len(absent) < 2:
            return
        with self._exclusive():
            self._lists()
            self._call("apt-get", "download", *(f"{r['package']}={r['version']}" for r in absent), cwd=self._work())

    def _find(self, package: str, version: str, sha256: str | None) -> dict | None:
        """The record of exactly that package in the index, which is refreshed once to find it."""
        self._lists()
        while True:
            found = self._offered(package, version)
            if found and sha256 in (None, found["sha256"]):
                return found
            if self._updated or not self.update():
                return None

    def _offered(self, package: str, version: str) -> dict | None:
        try:
            return record(self.show(package, version))
        except NotOffered:
            return None

    def _fetch(self, package: str, version: str, sha256: str, filename: str, offered: bool) -> Path:
        work = self._work()
        if offered:
            # apt writes the colon of an epoch as %3a, the archive leaves the epoch out
            names = [f"{package}_{version.replace(':', '%3a')}_{a}.deb" for a in (ARCHITECTURE, "all")]
            for path in (work / name for name in names):
                if path.exists() and digest.of_file(path) == sha256:  # by prefetch
                    return path
            done = self._call("apt-get", "download", f"{package}={version}", cwd=work)
            for path in (work / name for name in names):
                if done.returncode == 0 and path.exists():
                    return path
            raise MachineError(f"{package} {version} can't be fetched; apt says: {_complaint(done)}")
        path = work / Path(filename).name
        complaints = []
        # Only the security archive has pool/updates.
        for base in sorted(self._bases, reverse=filename.startswith("pool/updates/"), key=self._bases.index):
            done = self._call(str(APT_HELPER), "download-file", base + filename, str(path), f"SHA256:{sha256}")
            if done.returncode == 0 and path.exists():
                return path
            complaints.append(_complaint(done))
        if not self._updated:
            raise MachineError(f"{package} {version} can't be fetched; apt says: {complaints[0]}")
        raise NotOffered(
            f"Debian {', '.join(self.suites)} no longer offers {package} {version} (sha256 {sha256}); "
            f"apt says: {complaints[0]}."
        )

    def _work(self) -> Path:
        """Where packages arrive; what is there stays after a failure, and apt goes on where it stopped."""
        work = self.root / "partial"
        work.mkdir(exist_ok=True)
        return work

    # -- the private root

    def _lists(self) -> None:
        self._prepare()
        if not set(self.suites) <= self._listed():
            self.update()

    def _listed(self) -> set[str]:
        done = self._call("apt-get", "indextargets", "--format", "$(RELEASE)", "Created-By: Packages")
        return set(done.stdout.split())

    def _prepare(self) -> None:
        if self._prepared:
            return
        keyrings = _existing(KEYRINGS)
        if not keyrings:
            raise UserError("The Debian archive's keys are missing: install the package debian-archive-keyring.")
        directories = ["var/lib/apt/lists/partial", "var/cache/apt/archives/partial", "var/log/apt"]
        directories += [f"etc/apt/{part}.d" for part in ("apt.conf", "preferences", "sources.list", "trusted.gpg")]
        for directory in directories:
            (self.root / directory).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        main, security = self._archives()
        self._bases = [uri for uri in (main, security) if uri]
        archived = self._archived(main)
        if archived:
            keyrings += _existing(RETIRED_KEYRINGS)
            whole.write(self._gpgv, _GPGV)
            self._gpgv.chmod(0o755)
        _write_if_changed(self.root / "apt.conf", self._configuration(archived))
        expired = "Check-Valid-Until: no\n" if archived else ""
        sources = "\n".join(
            f"Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\nArchitectures: {ARCHITECTURE}\n"
            f"Targets: Packages\nSigned-By: {','.join(map(str, keyrings))}\n{expired}"
            for uri, suite in self._wanted_suites(main, security)
        )
        _write_if_changed(self._sources, sources)
        self._prepared = True

    def _archives(self) -> tuple[str, str | None]:
        """The addresses of the main archive and (or None) of the security archive."""
        if self.snapshot:
            main, security = (
                self.snapshot_mirror.format(archive=archive, timestamp=self.snapshot)
                for archive in ("debian", "debian-security")
            )
            return _folder(main), _folder(security) if security != main else None
        if self.mirror:
            return self.mirror if self.mirror.startswith("mirror") else _folder(self.mirror), None
        return machine_sources()

    def _archived(self, main: str) -> bool:
        """Whether the lists are of a past moment: they may have expired, or be signed by a key that has."""
        names = {re.split(r"[-/]", suite)[0] for suite in self.suites}
        return bool(self.snapshot or _TIMESTAMP.search(main) or names & _ARCHIVED)

    @property
    def _gpgv(self) -> Path:
        return self.root / "gpgv"

    @property
    def _sources(self) -> Path:
        return self.root / "etc/apt/sources.list.d/debian.sources"

    def _wanted_suites(self, main: str, security: str | None) -> list[tuple[str, str]]:
        wanted = []
        for suite in self.suites:
            wanted.append((main, suite))
            if suite in _ALONE or _BACKPORTS.search(suite):
                continue
            wanted.append((main, f"{suite}-updates"))
            if security:
                name = f"{suite}/updates" if suite in _OLD_SECURITY else f"{suite}-security"
                wanted.append((security, name))
        return wanted

    def _drop(self, suites: Sequence[str]) -> bool:
        """Leave out companion suites that the mirror doesn't have. Returns whether any was left out."""
        blocks = self._sources.read_text().split("\n\n")
        kept = [
            block
            for block in blocks
            if not any(f"Suites: {suite}\n" in block + "\n" for suite in suites if suite not in self.suites)
        ]
        if len(kept) == len(blocks):
            return False
        _write_if_changed(self._sources, "\n\n".join(kept))
        return True

    def _configuration(self, archived: bool) -> str:
        settings = _run(["apt-config", "dump"], os.environ | {"LC_ALL": "C"}).stdout.splitlines()
        copied = []
        for line in settings:
            found = _SETTING.fullmatch(line)
            if found and found[2] and not _NOT_COPIED.match(found[1]):
                copied.append(line)
        if not any(line.startswith("Acquire::Retries ") for line in copied):
            copied.append('Acquire::Retries "2";')
        shell = ["apt-config", "shell", "netrc", "Dir::Etc::netrc/f", "netrcparts", "Dir::Etc::netrcparts/d"]
        own = [
            f'Dir "{self.root}/";',
            f'Dir::State::status "{self.root}/status";',
            'APT::Sandbox::User "root";',  # the unprivileged user of apt can't enter a user's folders
            f'APT::Architecture "{ARCHITECTURE}";',
            f'APT::Architectures:: "{ARCHITECTURE}";',
            'APT::Install-Recommends "false";',
            'APT::Install-Suggests "false";',
            'APT::Update::Error-Mode "any";',
            'Acquire::Languages "none";',
            'Acquire::PDiffs "false";',
            'Debug::NoLocking "true";',  # this class holds a lock of its own around every call
        ]
        # Who may use the mirror is the machine's affair too: apt looks it up in its own files.
        for name, value in re.findall(r"^(\w+)='(.*)'$", _run(shell, os.environ | {"LC_ALL": "C"}).stdout, re.M):
            if os.access(value, os.R_OK):
                own.append(f'Dir::Etc::{name} "{value}";')
        if archived:
            own.append(f'APT::Key::gpgvcommand "{self._gpgv}";')
        backports = next((suite for suite in self.suites if _BACKPORTS.search(suite)), None)
        if backports and len(self.suites) > 1:
            own.append(f'APT::Default-Release "{backports}";')
        return "\n".join(own + copied) + "\n"

    def _call(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
        environment = os.environ | {"APT_CONFIG": str(self.root / "apt.conf"), "LC_ALL": "C"}
        options = ["-y", "-q"] if argv[0] == "apt-get" else []
        return _run([argv[0], *options, *argv[1:]], environment, cwd)

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One process at a time; reentrant within the object."""
        if self._held:
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1
            return
        self.root.mkdir(parents=True, exist_ok=True)
        with lock.held(self.root / "guard"):
            self._held = 1
            try:
                yield
            finally:
                self._held = 0


def record(fields: dict[str, str]) -> dict:
    """A package's record from its fields in the index."""
    return {
        "package": fields["Package"],
        "version": fields["Version"],
        "sha256": fields["SHA256"],
        "bytes": int(fields["Size"]),
        "filename": fields["Filename"],
    }


def stanzas(text: str) -> list[dict[str, str]]:
    """The paragraphs of apt's control format, each a dictionary of its fields."""
    paragraphs = []
    for block in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        name = None
        for line in block.splitlines():
            if line[:1].isspace() and name:
                fields[name] += "\n" + line[1:]
            elif ":" in line:
                name, value = line.split(":", 1)
                fields[name] = value.strip()
        if fields:
            paragraphs.append(fields)
    return paragraphs


def dependencies(fields: dict[str, str]) -> list[list[tuple[str, str, str]]]:
    """Depends and Pre-Depends: for each a list of alternatives (package, relation, version)."""
    text = ",".join(fields[name] for name in ("Pre-Depends", "Depends") if name in fields)
    pattern = re.compile(r"\s*([^\s(:]+)(?::\S+)?\s*(?:\(\s*([<>=]+)\s*([^)\s]+)\s*\))?")
    return [
        [(m[1], m[2] or "", m[3] or "") for m in map(pattern.match, group.split("|")) if m]
        for group in text.split(",")
        if group.strip()
    ]


def pinned(
    key: str, lock_file: Path, cache: Path, apt: PrivateApt, choose: Callable[[PrivateApt], list[dict]]
) -> list[tuple[dict, Path]]:
    """The packages that stand for `key`, as (record, path of the .deb in the cache).

    The lock file decides; where it has no entry, `choose` picks from fresh lists and its choice is
    written there. With an entry and the files in the cache nothing is asked of apt or the network.
    """
    entry = lock.read(lock_file).get(key)
    if entry is None:
        apt.update()
        records = choose(apt)
    else:
        records = _records(entry, key, lock_file)
    into = Path(cache) / "downloads"
    apt.prefetch(records, into)
    try:
        paths = [
            apt.download(r["package"], r["version"], r["sha256"], into=into, filename=r["filename"]) for r in records
        ]
    except NotOffered as error:
        if entry is None:
            raise
        where = lock.line(lock_file, key)
        instead = "what the archive has" if isinstance(error, OtherDigest) else "the current version"
        raise type(error)(
            f"{error} To take {instead} instead, remove the entry {key!r} (line {where}) from {lock_file}."
        ) from error
    if entry is None:
        lock.put(lock_file, key, {"packages": records})
    return list(zip(records, paths, strict=True))


_RECORD = {"package": str, "version": str, "sha256": str, "bytes": int, "filename": str}


def _records(entry: dict, key: str, lock_file: Path) -> list[dict]:
    """The packages of an entry of the lock file. Raises UserError where it has none, or one is not whole."""
    records = entry.get("packages")
    whole_ones = isinstance(records, list) and all(
        isinstance(one, dict) and all(isinstance(one.get(name), kind) for name, kind in _RECORD.items())
        for one in records
    )
    if not whole_ones or not records:
        raise UserError(
            f"the entry {key!r} (line {lock.line(lock_file, key)}) of {lock_file} is damaged: mend it, or remove it to "
            "pin the current version"
        )
    return records


def private(spec: dict, suites: Sequence[str], cache: Path) -> PrivateApt:
    """apt for a source of the configuration, its root below `cache`: one for each set of suites and archive.

    Of spec are used "snapshot", "snapshot_mirror" and "mirror", each optional.
    """
    name = "+".join(re.sub(r"[^A-Za-z0-9.-]", "_", suite) for suite in suites)
    mirror, snapshot = spec.get("mirror"), spec.get("snapshot")
    snapshots = spec.get("snapshot_mirror") or SNAPSHOTS
    if snapshot:
        name += "@" + timestamp(snapshot)
        if snapshots != SNAPSHOTS:
            name += "@" + digest.of_bytes(snapshots.encode())[:12]
    elif mirror:
        name += "@" + digest.of_bytes(mirror.encode())[:12]
    return PrivateApt(Path(cache) / "apt" / name, suites, mirror, snapshot, snapshots)


def origin(spec: dict) -> str:
    """What the name of a source in a lock file ends in: the moment or the mirror, where one is named."""
    if spec.get("snapshot"):
        return "@" + timestamp(spec["snapshot"])  # every snapshot mirror has the same
    return f"@{spec['mirror']}" if spec.get("mirror") else ""


def timestamp(text: str) -> str:
    """A moment as a snapshot's address has it, of a day (its beginning, UTC) or such a moment. UserError else."""
    for form in ("%Y-%m-%d", "%Y%m%dT%H%M%SZ"):
        try:
            return datetime.strptime(text, form).strftime("%Y%m%dT%H%M%SZ")
        except ValueError:
            continue
    raise UserError(f"'{text}' is no date as 2024-01-31 and no moment as 20240131T000000Z")


def machine_sources() -> tuple[str, str | None]:
    """The URIs of Debian's main archive and (or None) of its security archive that the machine's apt uses.

    Other archives among the machine's sources don't count. Works on lists never fetched. UserError when
    the machine has no Debian mirror.
    """
    form = "\t".join(f"$({field})" for field in _SOURCE_FIELDS)
    environment = os.environ | {"LC_ALL": "C"}
    rows = []
    # What was fetched tells its origin; what never was is shown only without the release's information.
    for options in ([], ["--no-release-info"]):
        done = _run(["apt-get", "indextargets", *options, "--format", form, "Created-By: Packages"], environment)
        rows += [line.split("\t") for line in done.stdout.splitlines() if line.count("\t") == len(_SOURCE_FIELDS) - 1]
    return choose_sources(rows, _codename())


def choose_sources(rows: Sequence[Sequence[str]], codename: str) -> tuple[str, str | None]:
    """Of rows (URI, release, component, origin, keyring) those of Debian: (main URI, security URI or None).

    A value that apt doesn't know stands as `$(NAME)`. The first of equally good ones is taken.
    """
    best: dict[bool, tuple[int, str]] = {}
    origins = {(uri, release): origin for uri, release, _, origin, _ in rows if not origin.startswith("$(")}
    releases = {codename, "stable", "oldstable", "oldoldstable", "testing", "unstable", "sid"}
    for uri, release, component, _, keyring in rows:
        origin = origins.get((uri, release), "")
        base = re.sub(r"(-updates|-security|/updates|-proposed-updates|-backports(-sloppy)?)$", "", release)
        if component != "main" or uri.startswith("cdrom:") or origin not in ("", "Debian", "Debian Backports"):
            continue
        if not origin and base not in releases:
            continue
        security = release.endswith(("-security", "/updates"))
        known = "debian-archive" in keyring
        if not keyring.startswith("$(") and keyring and not known:
            continue
        named = re.search(r"/debian(-security)?/?$", uri) is not None
        rank = 0 if origin else 1 if known else 2 if named else 3
        if security not in best or rank < best[security][0]:
            best[security] = (rank, uri)
    if False not in best:
        raise UserError(
            "The machine's apt has no Debian mirror among its sources: name one in the configuration (mirror)."
        )
    return best[False][1], best[True][1] if True in best else None


def _existing(paths: Sequence[Path]) -> list[Path]:
    """The first of the paths that exists, if any does: the same file under several names."""
    return [path for path in paths if path.exists()][:1]


def _folder(address: str) -> str:
    return address if address.endswith("/") else address + "/"


def _codename() -> str:
    try:
        text = Path("/etc/os-release").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r'^VERSION_CODENAME="?([^"\n]*)', text, re.M)
    return found[1] if found else ""


def _run(argv: list[str], environment: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess:
    try:
        return subprocess.run(
            argv, env=environment, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
    except FileNotFoundError as error:
        raise MachineError(
            f"{argv[0]} is missing: packages of Debian can be fetched only where apt is installed."
        ) from error


def _complaint(done: subprocess.CompletedProcess) -> str:
    lines = [line for line in done.stderr.splitlines() if line.startswith("E:")] or done.stderr.splitlines()
    return lines[0].removeprefix("E:").strip() if lines else f"nothing, exit status {done.returncode}."


def _write_if_changed(path: Path, text: str) -> None:
    # apt rebuilds its caches when its files look newer.
    if not path.exists() or path.read_text() != text:
        whole.write(path, text)
