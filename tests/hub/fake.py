"""The part of the Hub's API that pushing and loading use, on 127.0.0.1 and in memory."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

_API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/([a-z-]+)/([^/]+))?")
_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")


class FakeHub(ThreadingHTTPServer):
    """Repositories as lists of commits, each a dictionary of files; and a log of requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        self.asked: list[str] = []
        self.announced: dict[str, int] = {}  # sizes that are a lie

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def commit(self, repository, files):
        """Add a commit with these files, and return its id."""
        commits = self.repositories.setdefault(repository, [])
        content = repr((len(commits), sorted(files.items()))).encode()
        oid = hashlib.sha1(content).hexdigest()
        commits.append((oid, dict(files)))
        return oid

    def files(self, repository, revision="main"):
        commits = self.repositories.get(repository)
        if commits is None:
            return None, None
        if revision == "main":
            return commits[-1] if commits else (None, {})
        return next(((oid, files) for oid, files in commits if oid == revision), (None, None))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # no connection outlives the server

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.server.asked.append(f"{self.command} {self.path}")
        path = unquote(urlsplit(self.path).path)
        if found := _FILE.fullmatch(path):
            return self._file(*found.groups())
        if found := _API.fullmatch(path):
            repository, what, revision = found.groups()
            oid, files = self.server.files(repository, revision or "main")
            if files is None:
                return self._missing(
                    "RepoNotFound" if oid is None and not what else "RevisionNotFound"
                )
            if what == "tree":
                return self._json([self._entry(name, data) for name, data in files.items()])
            return self._json({"id": repository, "sha": oid, "siblings": [], "private": False})
        return self._missing("EntryNotFound")

    def do_POST(self):
        self.server.asked.append(f"POST {self.path}")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = unquote(urlsplit(self.path).path)
        if path == "/api/repos/create":
            item = json.loads(body)
            name = "/".join(filter(None, (item.get("organization"), item["name"])))
            if name in self.server.repositories:
                return self._json({"url": f"{self.server.url}/{name}"}, 409)
            self.server.repositories[name] = []
            return self._json({"url": f"{self.server.url}/{name}", "id": name})
        if path == "/api/validate-yaml":
            return self._json({"errors": [], "warnings": []})
        found = _API.fullmatch(path)
        if not found or found[1] not in self.server.repositories:
            return self._missing("RepoNotFound")
        if found[2] == "preupload":
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return self._json({"files": files})
        _, files = self.server.files(found[1], found[3])
        if files is None:
            return self._missing("RevisionNotFound")
        if found[2] == "paths-info":
            asked = parse_qs(body.decode())["paths"]
            return self._json([self._entry(name, files[name]) for name in asked if name in files])
        return self._commit(found[1], body)

    def _commit(self, repository, body):
        _, before = self.server.files(repository)
        files = dict(before)
        for line in body.splitlines():
            item = json.loads(line)
            if item["key"] == "file":
                files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
            elif item["key"] == "deletedFile":
                del files[item["value"]["path"]]
        oid = self.server.commit(repository, files)
        url = f"{self.server.url}/{repository}/commit/{oid}"
        return self._json({"success": True, "commitOid": oid, "commitUrl": url, "hookOutput": ""})

    def _file(self, repository, revision, name):
        oid, files = self.server.files(repository, revision)
        if files is None:
            return self._missing(
                "RepoNotFound" if repository not in self.server.repositories else "RevisionNotFound"
            )
        if name not in files:
            return self._missing("EntryNotFound")
        etag = hashlib.sha1(files[name]).hexdigest()
        return self._answer(200, files[name], {"X-Repo-Commit": oid, "ETag": f'"{etag}"'})

    def _entry(self, name, data):
        size = self.server.announced.get(name, len(data))
        return {"type": "file", "path": name, "size": size, "oid": hashlib.sha1(data).hexdigest()}

    def _missing(self, reason):
        headers = {"X-Error-Code": reason, "X-Error-Message": reason}
        return self._answer(404, b'{"error": "not found"}', headers)

    def _json(self, item, status=200):
        return self._answer(status, json.dumps(item).encode(), {"Content-Type": "application/json"})

    def _answer(self, status, body, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
