"""Files by address and digest: fetched once into the cache, and used only when they are what they should be."""

from __future__ import annotations

import os
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, NoReturn
from urllib.parse import unquote, urlsplit

import requests
import urllib3

from fsexp import digest, lock
from fsexp.errors import MachineError, UserError

# Seconds to wait before the second and each later try. A network that is gone for longer is for the user to see.
WAITS_S = (1, 3, 9)
CONNECT_S = 15
READ_S = 60  # between two bytes, not for the whole file

_LATER = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS)
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_CHUNK_BYTES = 1 << 18
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):(?=//|/)", re.IGNORECASE)
# The machine's own list knows what its owner has added; the one that comes with requests is for machines without.
_AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")


class _Transient(Exception):
    """A failure that another try may not have."""


@dataclass(frozen=True)
class _Wanted:
    """A file that is to be fetched."""

    url: str
    sha256: str
    path: Path

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + ".part")

    def failed(self, why: str) -> str:
        """The sentence for a file that can't be had, with what to do."""
        return f"{self.url} can't be fetched: {why}. {self.by_hand()}"

    def by_hand(self) -> str:
        return f"Or put the file into {self.path.parent} by hand: {self.path.name}, sha256 {self.sha256}."


def file(source: str, sha256: str, cache: Path) -> Path:
    """The file at an address (http, https, ftp, file) or path, checked against its digest.

    What is fetched is kept in `cache`/downloads under the last part of its address, and taken from there when it lies
    there; a path or file: address is used where it is. Raises UserError for a file that is not there, not allowed or
    not what it should be, MachineError where the network, the server or the disk fails; both say what to do.
    """
    sha256 = sha256.lower()
    local = _local(source)
    if local is not None:
        return _checked(local, sha256)
    wanted = _Wanted(source, sha256, _place(source, cache))
    if not _is_there(wanted):
        try:
            wanted.path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may be at the same file: the second waits, and finds it.
            with lock.held(wanted.path.with_name(f".{wanted.path.name}.guard")):
                if not _is_there(wanted):
                    _fetch(wanted)
        except OSError as error:
            raise MachineError(f"{wanted.part}: cannot write: {error.strerror}. {wanted.by_hand()}") from error
    return wanted.path


def at_hand(source: str, sha256: str, cache: Path) -> bool:
    """Whether the file can be had without a network, being there already and what it should be."""
    path = _local(source) or _place(source, cache)
    return path.is_file() and digest.of_file(path) == sha256.lower()


def _local(source: str) -> Path | None:
    """The path that a source is; None for an address of another machine."""
    scheme = _SCHEME.match(source)
    if scheme is None:
        return Path(source).expanduser()
    if scheme[1].lower() != "file":
        return None
    parts = urlsplit(source)
    if parts.netloc not in ("", "localhost"):
        raise UserError(
            f"{source} names a file on {parts.netloc}; a file: address is for this machine's: file:///PATH."
        )
    return Path(unquote(parts.path))


def _checked(path: Path, sha256: str) -> Path:
    try:
        found = digest.of_file(path)
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror}.") from None
    if found != sha256:
        raise UserError(f"{path} is not the file that is asked for: its sha256 is {found}, not {sha256}.")
    return path


def _place(url: str, cache: Path) -> Path:
    parts = urlsplit(url)
    if parts.scheme.lower() not in ("http", "https", "ftp") or not parts.hostname:
        raise UserError(f"{url} is no address to fetch a file from; http, https, ftp and file are known.")
    name = unquote(parts.path).rstrip("/").rpartition("/")[2]
    if name.startswith(".") or not name.isprintable() or len(os.fsencode(name)) > 200 or not name:
        raise UserError(f"{url} names no file: its last part can't be a file's name.")
    return Path(cache) / "downloads" / name


def _is_there(wanted: _Wanted) -> bool:
    """Whether the file is in the cache. UserError where another one is in its place: it may be somebody's only one."""
    if not wanted.path.exists():
        return False
    found = digest.of_file(wanted.path)
    if found != wanted.sha256:
        raise UserError(
            f"{wanted.path} is not the file of {wanted.url}: its sha256 is {found}, not {wanted.sha256}. "
            "Move it away to have the file fetched, or name a path instead of the address."
        )
    return True


def _fetch(wanted: _Wanted) -> None:
    waits = iter(WAITS_S)
    while not _taken(wanted):
        try:
            continued = _receive(wanted)
        except _Transient as error:
            wait = next(waits, None)
            if wait is None:
                raise MachineError(wanted.failed(f"{error} ({len(WAITS_S) + 1} tries)")) from error
            time.sleep(wait)
            continue
        if _taken(wanted):
            return
        trouble = _mismatch(wanted)
        wanted.part.unlink()
        # What was continued may be the beginning of another version of the file: from the start, then.
        if not continued:
            raise UserError(wanted.failed(f"{trouble}; it was thrown away"))


def _taken(wanted: _Wanted) -> bool:
    """Put the part in the file's place if it is all of it."""
    whole = wanted.part.exists() and digest.of_file(wanted.part) == wanted.sha256
    if whole:
        wanted.part.replace(wanted.path)
    return whole


def _mismatch(wanted: _Wanted) -> str:
    with wanted.part.open("rb") as part:
        if part.read(64).lstrip().lower().startswith((b"<!doctype html", b"<html")):
            return f"{_host(wanted.url)} gave a web page instead"
    return f"what {_host(wanted.url)} gave has the sha256 {digest.of_file(wanted.part)}, not {wanted.sha256}"


def _receive(wanted: _Wanted) -> bool:
    """Receive what is missing of the part; returns whether it was continued and not begun anew."""
    offset = wanted.part.stat().st_size if wanted.part.exists() else 0
    opened = _ftp if urlsplit(wanted.url).scheme.lower() == "ftp" else _http
    with opened(wanted, offset) as (start, chunks), wanted.part.open("ab" if start else "wb") as part:
        for chunk in chunks:
            part.write(chunk)
    return start > 0


@contextmanager
def _http(wanted: _Wanted, offset: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Yield where in the file the server begins, and the bytes from there."""
    # Without compression on the way: a .tar.gz would come unpacked from some servers.
    headers = {"Accept-Encoding": "identity", "User-Agent": "fsexp"}
    if offset:
        headers["Range"] = f"bytes={offset}-"
    try:
        response = requests.get(
            wanted.url, headers=headers, stream=True, timeout=(CONNECT_S, READ_S), verify=_authorities()
        )
    except requests.RequestException as error:
        _explain(wanted, error)
    with response:
        host, status = _host(response.url), response.status_code
        if status == HTTPStatus.OK:
            offset = 0
        elif offset and (status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE or not _continues(response, offset)):
            wanted.part.unlink()
            raise _Transient(f"{host} can't continue what was begun")
        elif status != HTTPStatus.PARTIAL_CONTENT:
            _refuse(wanted, host, status)
        yield offset, _body(response, host)


def _continues(response: requests.Response, offset: int) -> bool:
    """Whether an answer that gives a part of the file begins where it was asked to; true of all other answers."""
    if response.status_code != HTTPStatus.PARTIAL_CONTENT:
        return True
    return response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")


def _refuse(wanted: _Wanted, host: str, status: int) -> NoReturn:
    said = f"HTTP {status} {_PHRASES.get(status, '')}".strip()
    if status >= 500 or status in _LATER:
        raise _Transient(f"{host} answers {said}")
    raise UserError(wanted.failed(f"{host} answers {said}"))


def _body(response: requests.Response, host: str) -> Iterator[bytes]:
    try:
        # Not stream(): it gathers whole chunks, and what it has of one is lost when the connection breaks.
        while chunk := response.raw.read1(_CHUNK_BYTES, decode_content=False):
            yield chunk
    except (urllib3.exceptions.HTTPError, OSError) as error:
        silent = isinstance(error, urllib3.exceptions.ReadTimeoutError)
        why = f"{host} sent nothing for {READ_S} s" if silent else f"the connection to {host} broke"
        raise _Transient(why) from error


def _explain(wanted: _Wanted, error: requests.RequestException) -> NoReturn:
    """Raise what a request's failure means; after a redirect the host is the one that failed."""
    host = _host(error.request.url if error.request is not None and error.request.url else wanted.url)
    causes = list(_causes(error))
    text = " ".join(map(str, causes))
    if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in text:
        raise MachineError(wanted.failed(f"the certificate of {host} is not trusted here")) from error
    if isinstance(error, requests.exceptions.ProxyError):
        raise _Transient("the proxy that the environment names can't be used") from error
    if isinstance(error, requests.exceptions.Timeout):
        raise _Transient(f"{host} does not answer") from error
    if isinstance(error, requests.ConnectionError):
        if resolving := next((cause for cause in causes if isinstance(cause, socket.gaierror)), None):
            trouble = f"the host {host} is not found"
            if resolving.errno == socket.EAI_NONAME:  # the resolver's last word; EAI_AGAIN is what may pass
                raise MachineError(wanted.failed(trouble)) from error
            raise _Transient(trouble) from error
        if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
            raise _Transient(f"{host} refuses the connection") from error
        raise _Transient(f"the connection to {host} broke") from error
    raise UserError(wanted.failed(f"{host}: {error}".rstrip("."))) from error


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The exceptions behind one, which requests and urllib3 keep in several places."""
    waiting: list[object] = [error]
    while waiting:
        found = waiting.pop()
        if isinstance(found, BaseException):
            yield found
            waiting += [found.__cause__, getattr(found, "reason", None), *found.args]


def _authorities() -> bool | str:
    named = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
    return str(_AUTHORITIES) if not named and _AUTHORITIES.exists() else True


@contextmanager
def _ftp(wanted: _Wanted, offset: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """As _http, always from the beginning."""
    host = _host(wanted.url)
    try:
        response = urllib.request.urlopen(wanted.url, timeout=READ_S)
    except OSError as error:
        text = str(getattr(error, "reason", error))
        if "550" in text:
            raise UserError(wanted.failed(f"{host} has no such file")) from error
        raise _Transient(f"{host}: {text}") from error
    with response:
        yield 0, _ftp_body(response, host)


def _ftp_body(response: IO[bytes], host: str) -> Iterator[bytes]:
    try:
        while chunk := response.read(_CHUNK_BYTES):
            yield chunk
    except OSError as error:
        raise _Transient(f"the connection to {host} broke") from error


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
