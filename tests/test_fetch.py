import gzip
import hashlib
import os
import resource
import shutil
import socket
import ssl
import subprocess
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fsexp import fetch
from fsexp.errors import MachineError, UserError

DATA = bytes(range(256)) * 4000  # larger than what sockets hold
SHA = hashlib.sha256(DATA).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says: `server.answers` are functions of the handler, used in turn, the last for ever."""

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Range")))
        number = min(len(self.server.seen), len(self.server.answers)) - 1
        self.server.answers[number](self)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # the client went away, as some tests want it to


@pytest.fixture
def server():
    with Server(("127.0.0.1", 0), Handler) as server:
        server.seen, server.answers = [], [whole]
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """No proxies of the machine, and no waiting."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(fetch, "WAITS_S", (0, 0, 0))


def reply(handler, status, body=b"", length=None, **headers):
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)


def status(number, **headers):
    return lambda handler: reply(handler, number, b"no", **headers)


def whole(handler):
    reply(handler, 200, DATA)


def ranged(handler):
    given_range = handler.headers.get("Range")
    if given_range is None:
        return whole(handler)
    start = int(given_range.removeprefix("bytes=").removesuffix("-"))
    if start >= len(DATA):
        return reply(handler, 416, Content_Range=f"bytes */{len(DATA)}")
    last = len(DATA) - 1
    return reply(handler, 206, DATA[start:], Content_Range=f"bytes {start}-{last}/{len(DATA)}")


def cut(handler):
    reply(handler, 200, DATA[:300_000], length=len(DATA))


def part(cache, content, name="x.tar"):
    path = cache / "downloads" / f"{name}.part"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def names(cache):
    return sorted(path.name for path in (cache / "downloads").iterdir() if not path.name.startswith("."))


def test_a_file_is_fetched_once(server, tmp_path):
    got = fetch.file(f"{server.url}/pub/x.tar?v=1", SHA, tmp_path)
    assert got == tmp_path / "downloads" / "x.tar"
    assert got.read_bytes() == DATA
    assert fetch.file(f"{server.url}/pub/x.tar?v=1", SHA.upper(), tmp_path) == got
    assert len(server.seen) == 1
    assert names(tmp_path) == ["x.tar"]


def test_a_file_put_by_hand_is_taken(tmp_path):
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "x.tar").write_bytes(DATA)
    assert fetch.at_hand("https://nowhere.invalid/x.tar", SHA, tmp_path)
    assert fetch.file("https://nowhere.invalid/x.tar", SHA, tmp_path).read_bytes() == DATA


def test_another_file_put_by_hand_is_named_and_stays(server, tmp_path):
    mine = tmp_path / "downloads" / "x.tar"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")
    assert not fetch.at_hand(f"{server.url}/x.tar", SHA, tmp_path)
    with pytest.raises(UserError) as caught:
        fetch.file(f"{server.url}/x.tar", SHA, tmp_path)
    for word in (str(mine), SHA, hashlib.sha256(b"mine").hexdigest()):
        assert word in str(caught.value)
    assert mine.read_bytes() == b"mine"
    assert not server.seen


@pytest.mark.parametrize("write", [str, lambda p: p.as_uri(), lambda p: p.as_uri().replace("///", "//localhost/")])
def test_a_file_of_this_machine_is_used_where_it_is(tmp_path, write):
    path = tmp_path / "a b%.tar"
    path.write_bytes(DATA)
    assert fetch.file(write(path), SHA, tmp_path / "cache") == path
    assert not (tmp_path / "cache").exists()
    with pytest.raises(UserError, match="its sha256 is"):
        fetch.file(write(path), "0" * 64, tmp_path / "cache")
    assert path.read_bytes() == DATA
    path.unlink()
    with pytest.raises(UserError, match="No such file"):
        fetch.file(write(path), SHA, tmp_path / "cache")


@pytest.mark.parametrize("answers", [[cut, ranged], [cut, cut, whole]], ids=["continued", "no ranges"])
def test_a_cut_connection(server, tmp_path, answers):
    server.answers = answers
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert [seen for _, seen in server.seen] == [None] + ["bytes=300000-"] * (len(answers) - 1)
    assert names(tmp_path) == ["x.tar"]


def test_chunks_without_a_length(server, tmp_path):
    def chunked(handler):
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(DATA), 100_000):
            piece = DATA[start : start + 100_000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if handler.server.seen[1:] == []:
                handler.close_connection = True
                return
        handler.wfile.write(b"0\r\n\r\n")

    server.answers = [chunked]
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert len(server.seen) == 2


def test_an_earlier_start_is_continued(server, tmp_path):
    server.answers = [ranged]
    begun = part(tmp_path, DATA[:1000])
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert server.seen == [("/x.tar", "bytes=1000-")]
    assert not begun.exists()


def test_what_was_received_whole_needs_no_network(tmp_path):
    part(tmp_path, DATA)
    assert fetch.file("https://nowhere.invalid/x.tar", SHA, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("begun", [b"\0" * 1000, DATA + b"more"], ids=["another file's", "too long"])
def test_a_start_that_does_not_belong_is_thrown_away(server, tmp_path, begun):
    server.answers = [ranged]
    part(tmp_path, begun)
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert [seen for _, seen in server.seen] == [f"bytes={len(begun)}-", None]


def test_a_server_that_continues_elsewhere(server, tmp_path):
    server.answers = [lambda handler: reply(handler, 206, DATA, Content_Range=f"bytes 0-9/{len(DATA)}"), ranged]
    part(tmp_path, DATA[:1000])
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize(
    ("body", "word"), [(b"other", hashlib.sha256(b"other").hexdigest()), (b"<!DOCTYPE html>\n<p>", "a web page")]
)
def test_another_file_than_asked_for(server, tmp_path, body, word):
    server.answers = [lambda handler: reply(handler, 200, body)]
    with pytest.raises(UserError, match=word):
        fetch.file(f"{server.url}/x.tar", SHA, tmp_path)
    assert names(tmp_path) == []
    assert len(server.seen) == 1


@pytest.mark.parametrize("number", [401, 403, 404, 410, 204])
def test_an_answer_that_stays_is_not_asked_for_again(server, tmp_path, number):
    server.answers = [status(number)]
    with pytest.raises(UserError) as caught:
        fetch.file(f"{server.url}/x.tar", SHA, tmp_path)
    for word in (f"HTTP {number}", "127.0.0.1", str(tmp_path / "downloads"), "x.tar", SHA):
        assert word in str(caught.value)
    assert len(server.seen) == 1


def test_an_answer_that_may_change_is_asked_for_again(server, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(fetch, "WAITS_S", (1, 3, 9))
    monkeypatch.setattr(time, "sleep", waits.append)
    server.answers = [status(500), status(429), whole]
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert waits == [1, 3]
    server.answers = [status(503)]
    with pytest.raises(MachineError, match=r"127\.0\.0\.1 answers HTTP 503.*4 tries.*by hand"):
        fetch.file(f"{server.url}/y.tar", SHA, tmp_path)
    assert len(server.seen) == 3 + 4
    assert waits == [1, 3, 1, 3, 9]


def test_redirects(server, tmp_path):
    server.answers = [status(302, Location="/mirror/other-name"), whole]
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).name == "x.tar"
    assert [path for path, _ in server.seen] == ["/x.tar", "/mirror/other-name"]
    server.answers = [status(301, Location="/again")]
    with pytest.raises(UserError, match="redirects"):
        fetch.file(f"{server.url}/y.tar", SHA, tmp_path)
    server.answers = [status(301, Location="file:///etc/passwd")]
    with pytest.raises(UserError, match=r"y\.tar can't be fetched"):
        fetch.file(f"{server.url}/y.tar", SHA, tmp_path)


def test_after_a_redirect_the_host_that_failed_is_named(server, tmp_path):
    with socket.create_server(("127.0.0.2", 0)) as closed:
        port = closed.getsockname()[1]
    server.answers = [status(302, Location=f"http://127.0.0.2:{port}/x.tar")]
    with pytest.raises(MachineError, match=r"127\.0\.0\.2 refuses the connection"):
        fetch.file(f"{server.url}/x.tar", SHA, tmp_path)


def test_a_host_that_is_not_found(monkeypatch, tmp_path):
    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(MachineError, match=rf"the host nowhere\.invalid is not found.*{SHA}"):
        fetch.file("https://nowhere.invalid/x.tar", SHA, tmp_path)


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_a_certificate_that_nobody_vouches_for(server, tmp_path):
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "1"]
    subprocess.run([*made, "-keyout", tmp_path / "key", "-out", tmp_path / "cert"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with pytest.raises(MachineError, match=r"the certificate of 127\.0\.0\.1 is not trusted here"):
        fetch.file(server.url.replace("http:", "https:") + "/x.tar", SHA, tmp_path)
    assert not server.seen


def test_a_server_that_falls_silent(server, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "READ_S", 0.2)
    silent = threading.Event()

    def stalls(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(DATA)))
        handler.end_headers()
        handler.wfile.write(DATA[:1000])
        silent.wait(20)

    server.answers = [stalls, ranged]
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    server.answers = [lambda handler: silent.wait(20)]
    with pytest.raises(MachineError, match=r"127\.0\.0\.1 does not answer"):
        fetch.file(f"{server.url}/y.tar", SHA, tmp_path)
    silent.set()


def test_a_proxy_of_the_environment(server, tmp_path, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url)
    assert fetch.file("http://nowhere.invalid/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert [path for path, _ in server.seen] == ["http://nowhere.invalid/x.tar"]
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with pytest.raises(MachineError, match="proxy"):
        fetch.file("http://nowhere.invalid/y.tar", SHA, tmp_path)


def test_two_processes_fetch_a_file_once(server, tmp_path):
    def slow(handler):
        time.sleep(0.5)
        whole(handler)

    server.answers = [slow]
    with ProcessPoolExecutor(2) as pool:
        both = list(pool.map(fetch.file, [f"{server.url}/x.tar"] * 2, [SHA] * 2, [tmp_path] * 2))
    assert both[0].read_bytes() == DATA
    assert len(server.seen) == 1


def test_a_disk_that_takes_no_more(server, tmp_path):
    """The limit for a file's size fails a write where a full disk does, and needs no disk to fill."""
    server.answers = [ranged]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, limits[1]))
    try:
        with pytest.raises(MachineError, match=rf"x\.tar\.part: cannot write: File too large.*{SHA}"):
            fetch.file(f"{server.url}/x.tar", SHA, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fetch.file(f"{server.url}/x.tar", SHA, tmp_path).read_bytes() == DATA
    assert server.seen[1] == ("/x.tar", "bytes=500000-")


def test_a_compressed_file_stays_as_it_is(server, tmp_path):
    packed = gzip.compress(DATA)
    server.answers = [lambda handler: reply(handler, 200, packed, Content_Encoding="gzip")]
    got = fetch.file(f"{server.url}/x.tar.gz", hashlib.sha256(packed).hexdigest(), tmp_path)
    assert got.read_bytes() == packed


@pytest.mark.parametrize(
    "url", ["http://h.invalid/", "http://h.invalid", "gopher://h/x", "http:///x.tar", "http://h/.hidden", "file://h/x"]
)
def test_what_is_no_address_of_a_file(tmp_path, url):
    with pytest.raises(UserError, match=url):
        fetch.file(url, SHA, tmp_path)


@given(st.text(st.sampled_from("a.%/\\\0é ~2fF5c"), max_size=20), st.booleans())
def test_no_address_names_a_file_outside_of_the_cache(text, quoted):
    try:
        place = fetch._place(f"http://h/{quote(text) if quoted else text}", Path("/c"))
    except (UserError, ValueError):
        return
    assert os.path.normpath(place) == str(place)
    assert place.parent == Path("/c/downloads")


def test_ftp(tmp_path):
    """A server of the fewest words, as none comes with Python."""
    listener, data = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))

    def serve():
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb", buffering=0) as line:
            line.write(b"220 hello\r\n")
            while word := line.readline().split():
                port = data.getsockname()[1]
                answers = {
                    b"USER": b"230 in", b"TYPE": b"200 ok", b"PWD": b'257 "/"', b"EPSV": b"229 (|||%d|)" % port,
                    b"PASV": b"227 (127,0,0,1,%d,%d)" % divmod(port, 256), b"CWD": b"250 ok",
                }  # fmt: skip
                if word[0] != b"RETR" or word[1] != b"x.tar":
                    absent = word[-1] == b"y.tar"
                    line.write((b"550 none" if absent else answers.get(word[0], b"502 no")) + b"\r\n")
                    continue
                line.write(b"150 here\r\n")
                stream, _ = data.accept()
                with stream:
                    stream.sendall(DATA)
                line.write(b"226 done\r\n")

    def served(name):
        threading.Thread(target=serve, daemon=True).start()
        return fetch.file(f"ftp://127.0.0.1:{listener.getsockname()[1]}/{name}", SHA, tmp_path)

    with listener, data:
        assert served("x.tar").read_bytes() == DATA
        with pytest.raises(UserError, match=r"127\.0\.0\.1 has no such file"):
            served("y.tar")
