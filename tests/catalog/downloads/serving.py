"""A registry of packages and a hub of models on this machine, which can be slow, cut or refuse."""

import hashlib
import json
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef" * 2 + "01234567"


def wheel(path: Path, files: Mapping[str, bytes], name: str = "tiny_model") -> str:
    """A package with these files and code that must not be run; its digest."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: nowhere\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    beside = {
        f"{name}/__init__.py": b"raise SystemExit('this code must not be run')",
        f"{name}-1.0.dist-info/METADATA": metadata.encode(),
        f"{name}-1.0.dist-info/WHEEL": tags.encode(),
        f"{name}-1.0.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in ({f"{name}/{each}": files[each] for each in files} | beside).items():
            archive.writestr(inside, content)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass
class Site:
    """What is served by path, and how. `asked` are the requests so far: path and range."""

    pages: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    cut_after: dict[str, int] = field(default_factory=dict)
    """Bytes after which the connection of the next answer breaks; then it holds no more."""
    held: dict[str, int] = field(default_factory=dict)
    """Bytes after which an answer waits until `go_on` is set."""
    go_on: threading.Event = field(default_factory=threading.Event)
    status: dict[str, int] = field(default_factory=dict)
    """What is answered in place of a page."""
    headers: dict[str, dict[str, str]] = field(default_factory=dict)
    """What is said with such an answer."""
    takes_ranges: bool = True
    url: str = ""

    def put_package(self, path: Path, digest: str) -> None:
        """One package as an index of the standard form has it, with its metadata beside it."""
        project = path.name.split("-")[0].replace("_", "-")
        content = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            inside = next(each for each in archive.namelist() if each.endswith("METADATA"))
            metadata = archive.read(inside)
        self.pages[f"/files/{path.name}.metadata"] = metadata
        known = hashlib.sha256(metadata).hexdigest()
        link = f'<a href="/files/{path.name}#sha256={digest}" data-core-metadata="sha256={known}"'
        self.pages[f"/simple/{project}/"] = f"<html>{link}>{path.name}</a></html>".encode()
        self.types[f"/simple/{project}/"] = "text/html"
        self.pages[f"/files/{path.name}"] = content

    def put_model(
        self, hub_id: str, files: Mapping[str, bytes], revision: str = "", commit: str = COMMIT
    ) -> None:
        """A model of the hub; large files are named with their digests."""
        siblings, tree = [], []
        for name, content in files.items():
            about: dict[str, object] = {"rfilename": name, "size": len(content), "blobId": "0" * 40}
            leaf = {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
            if name.endswith((".safetensors", ".bin")):
                digest = hashlib.sha256(content).hexdigest()
                large = {"size": len(content), "pointerSize": 100}
                about["lfs"], leaf["lfs"] = large | {"sha256": digest}, large | {"oid": digest}
            siblings.append(about)
            tree.append(leaf)
            self.pages[f"/{hub_id}/resolve/{commit}/{name}"] = content
        said = {"id": hub_id, "sha": commit, "siblings": siblings, "private": False}
        at = f"/api/models/{hub_id}"
        branches = [f"{at}/revision/{revision}"] if revision else [at, f"{at}/revision/main"]
        for place in (*branches, f"{at}/revision/{commit}"):
            self.pages[place] = json.dumps(said).encode()
        self.pages[f"{at}/tree/{commit}"] = json.dumps(tree).encode()

    def ranges_of(self, path: str) -> list[str]:
        """The ranges in which this path was asked for, "" for the whole."""
        return [asked for at, asked in self.asked if at == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        site, asked = self.site, self.headers.get("Range", "")
        site.asked.append((path, asked))
        content, status = site.pages.get(path), site.status.get(path, 200)
        if content is None or status != 200:
            said = {"Content-Length": "0", **site.headers.get(path, {})}
            self._begin(status if status != 200 else 404, said)
            return
        headers, start = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"'}, 0
        if asked.startswith("bytes=") and site.takes_ranges:
            start, status = int(asked.removeprefix("bytes=").split("-")[0]), 206
            if start >= len(content):
                self._begin(416, {"Content-Length": "0"})
                return
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        body = content[start:]
        headers |= {"Content-Length": str(len(body)), "X-Repo-Commit": COMMIT}
        headers["Content-Type"] = site.types.get(path, "application/octet-stream")
        self._begin(status, headers)
        if self.command == "HEAD":
            return
        if path in site.cut_after:
            self.wfile.write(body[: site.cut_after.pop(path)])
            self.close_connection = True
            return
        if path in site.held:
            self.wfile.write(body[: site.held[path]])
            self.wfile.flush()
            site.go_on.wait(60)
            body = body[site.held[path] :]
        self.wfile.write(body)

    do_HEAD = do_GET

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Whoever asked has gone."""


@contextmanager
def served() -> Iterator[Site]:
    """A site at its own address, as long as this is open."""
    site = Site()
    handler: Callable[..., BaseHTTPRequestHandler] = type("Handler", (_Handler,), {"site": site})
    server = _Server(("127.0.0.1", 0), handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()
