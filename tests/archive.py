"""A small signed archive of Debian packages, and a server that shows it as it was at a moment."""

import hashlib
import http.server
import lzma
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import packages


class Keys:
    """gpg with a home of its own. A key is made and used as of a day, so that it can have expired since."""

    def __init__(self):
        # A path of pytest's may be too long for the agent's socket.
        self.home = Path(tempfile.mkdtemp(prefix="gpg."))
        self.environment = os.environ | {"GNUPGHOME": str(self.home)}

    def gpg(self, *arguments, day=None, data=b""):
        moment = [f"--faked-system-time={day.replace('-', '')}T000000!"] if day else []
        argv = ["gpg", "--batch", "--quiet", "--passphrase", "", *moment, *arguments]
        return subprocess.run(argv, input=data, env=self.environment, check=True, capture_output=True).stdout

    def make(self, name, day, expires):
        self.gpg("--quick-gen-key", name, "rsa2048", "sign", expires, day=day)

    def fingerprint(self, name):
        rows = self.gpg("--with-colons", "--list-keys", name).decode().splitlines()
        return next(row.split(":")[9] for row in rows if row.startswith("fpr"))

    def keyring(self, path, *names):
        path.write_bytes(self.gpg("--export", *names))
        return path

    def sign(self, name, text, day):
        return self.gpg("--local-user", name, "--digest-algo", "SHA512", "--clearsign", day=day, data=text)

    def close(self):
        subprocess.run(["gpgconf", "--kill", "all"], env=self.environment, check=False)
        shutil.rmtree(self.home)


def build(root, suite, debs, date, valid_until="", sign=None):
    """Lay out an archive of the packages ({path of a .deb: its index fields}) with one suite below `root`.

    date, valid_until: as a Release file has them. sign(text) gives the InRelease; without it nothing is signed.
    """
    paragraphs = []
    for deb, fields in debs.items():
        data = deb.read_bytes()
        name, version, architecture = deb.stem.split("_")
        target = root / "pool" / "main" / deb.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        fields = {
            "Package": name, "Version": version, "Architecture": architecture, "Maintainer": "somebody", **fields,
            "Filename": f"pool/main/{deb.name}", "Size": len(data), "SHA256": hashlib.sha256(data).hexdigest(),
        }  # fmt: skip
        paragraphs.append("".join(f"{key}: {value}\n" for key, value in fields.items()))
    index = "\n".join(paragraphs).encode()
    files = {"main/binary-amd64/Packages": index, "main/binary-amd64/Packages.xz": lzma.compress(index)}
    release = f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nDate: {date}\n"
    release += f"Valid-Until: {valid_until}\n" if valid_until else ""
    release += "Architectures: amd64\nComponents: main\nSHA256:\n"
    top = root / "dists" / suite
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
        release += f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}\n"
    (top / "Release").write_text(release)
    if sign:
        (top / "InRelease").write_bytes(sign(release.encode()))


class Server:
    """Serves {(archive, timestamp): folder}, and sends who asks for a later moment to the last state before it."""

    def __init__(self, states):
        self.asked = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.asked.append(self.path)
                _, archive, moment, rest = self.path.split("/", 3)
                known = [(a, t) for a, t in states if a == archive and t <= moment]
                if not known:
                    self.send_error(404)
                elif max(known)[1] != moment:
                    self.send_response(302)
                    self.send_header("Location", f"/{archive}/{max(known)[1]}/{rest}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    self.answer(states[max(known)] / rest)

            def answer(self, path):
                if not path.is_file():
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(path.stat().st_size))
                self.end_headers()
                self.wfile.write(path.read_bytes())

            def log_message(self, *_):
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.template = f"http://127.0.0.1:{self._http.server_port}/{{archive}}/{{timestamp}}/"

    def close(self):
        self._http.shutdown()
        self._http.server_close()


def kernel_debs(folder, kernels):
    """Packages of kernels and of the metapackage for the last: {release: upstream version} -> as `build` takes them."""
    debs = {}
    for release, version in kernels.items():
        path = folder / f"linux-image-{release}_{version}-1_amd64.deb"
        debs[packages.make_deb(path, {"./boot/vmlinuz": release.encode()})] = {}
    meta = packages.make_deb(folder / f"linux-image-amd64_{version}-1_amd64.deb", {"./usr/share/x": b""})
    debs[meta] = {"Depends": f"linux-image-{release} (= {version}-1)"}
    return debs
