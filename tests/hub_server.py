"""A server on the loopback address that speaks the protocol of the Hugging Face Hub, as far as downloads and uploads need it."""

import base64
import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/(revision|tree)/([^/?]+)")
_UPLOAD = re.compile(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/([^/?]+)")
_FILE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class Hub:
    """What the server holds and what it was asked.

    Attributes:
        repositories: ("models" or "datasets", "owner/name") -> {revision: {file: bytes}}.
        gated: the names of repositories that refuse everyone.
        created: what was asked for the newest model.
        requests: (method, path) of each request for a file.
        cut: file -> the number of bytes after which the next answer breaks off.
        url: of the server.
        description: what is answered in place of a repository's description; None for the true one.
        stalls: "silent" answers nothing, "slow" sends a byte of a file every tenth of a second, "stops" sends a byte of a
            file and then nothing, "busy" asks to wait 100,000 seconds; None answers at once.
    """

    def __init__(self):
        self.repositories, self.gated, self.requests, self.cut, self.url = {}, set(), [], {}, None
        self.description = self.stalls = self.created = None
        self.ended = threading.Event()

    def add(self, kind, name, files, *revisions):
        """Publishes files as a commit, which it returns; `revisions` are further names of it ("main", ...)."""
        commit = hashlib.sha1(repr((kind, name, sorted(files.items()))).encode()).hexdigest()
        repository = self.repositories.setdefault((kind, name), {})
        repository.update(dict.fromkeys((commit, *(revisions or ("main",))), (commit, files)))
        return commit

    @property
    def fetched(self):
        """The names of the files that were downloaded."""
        return [urllib.parse.unquote(_FILE.fullmatch(path)[4]) for method, path in self.requests if method == "GET"]


@contextlib.contextmanager
def serving():
    """A `Hub`, served on a free port."""
    hub = Hub()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args):
            pass

        def do_POST(self):
            """What uploads ask: all files are sent with the commit."""
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            if "Authorization" not in self.headers:
                self._error(401, "RepoNotFound")
            elif self.path == "/api/repos/create":
                hub.created = json.loads(sent)
                self._json({"url": f"{hub.url}/{hub.created['organization']}/{hub.created['name']}"})
            elif self.path == "/api/validate-yaml":
                self._json({"errors": [], "warnings": []})
            elif match := _UPLOAD.fullmatch(self.path.split("?")[0]):
                name, what, revision = match.groups()
                if what == "preupload":
                    files = json.loads(sent)["files"]
                    self._json({"files": [f | {"uploadMode": "regular", "shouldIgnore": False} for f in files]})
                else:
                    lines = [json.loads(line) for line in sent.splitlines()]
                    files = [line["value"] for line in lines if line["key"] == "file"]
                    contents = {f["path"]: base64.b64decode(f["content"]) for f in files}
                    commit = hub.add("models", name, contents, revision)
                    self._json({"commitUrl": f"{hub.url}/{name}/commit/{commit}", "commitOid": commit})
            else:
                self._error(404, "EntryNotFound")

        def do_GET(self):
            path = self.path.split("?")[0]
            if hub.stalls == "silent":
                hub.ended.wait()
            if hub.stalls == "busy":
                self._error(429, "RateLimited", **{"Retry-After": "100000"})
            elif match := _API.fullmatch(path):
                self._about(*match.groups())
            elif match := _FILE.fullmatch(path):
                hub.requests.append((self.command, path))
                self._file(match[1] or "models", match[2], match[3], urllib.parse.unquote(match[4]))
            else:
                self._error(404, "RepoNotFound")

        do_HEAD = do_GET

        def _found(self, kind, name, revision):
            """(commit, files), or None after an error was answered."""
            if name in hub.gated:
                return self._error(403, "GatedRepo")
            if (kind, name) not in hub.repositories:
                return self._error(401, "RepoNotFound")
            found = hub.repositories[kind, name].get(urllib.parse.unquote(revision))
            return found or self._error(404, "RevisionNotFound")

        def _about(self, kind, name, what, revision):
            found = self._found(kind, name, revision)
            if found:
                commit, files = found
                if what == "revision" and hub.description is not None:
                    self._json(hub.description)
                elif what == "revision":
                    self._json({"id": name, "sha": commit, "siblings": [{"rfilename": file} for file in files]})
                else:
                    self._json([{"type": "file", "path": f, "size": len(d), "oid": "0" * 40} for f, d in files.items()])

        def _file(self, kind, name, revision, file):
            found = self._found(kind, name, revision)
            if not found:
                return
            commit, files = found
            if file not in files:
                self._error(404, "EntryNotFound")
                return
            data = files[file]
            begin = int(re.fullmatch(r"bytes=(\d+)-.*", self.headers.get("Range", "bytes=0-"))[1])
            about = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit}
            if "Range" in self.headers:
                about["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
            self._begin(206 if "Range" in self.headers else 200, len(data) - begin, **about)
            if self.command == "GET":
                end = hub.cut.pop(file, None)
                for number in range(begin, len(data) if hub.stalls == "slow" else begin + (hub.stalls == "stops")):
                    self.wfile.write(data[number : number + 1])
                    hub.ended.wait(0.1)
                if hub.stalls:
                    hub.ended.wait()
                self.wfile.write(data[begin:end])
                if end is not None:
                    self.close_connection = True

        def _json(self, content):
            data = json.dumps(content).encode()
            self._begin(200, len(data), **{"Content-Type": "application/json"})
            self.wfile.write(data)

        def _error(self, status, code, **headers):
            self._begin(status, 0, **{"X-Error-Code": code} | headers)

        def _begin(self, status, length, **headers):
            self.send_response(status)
            for name, value in ({"Content-Length": str(length)} | headers).items():
                self.send_header(name, value)
            self.end_headers()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *about: None  # a client that has given up
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
