"""The part of the Hub's API that pushing and loading use, on 127.0.0.1 and in memory."""

import base64
import hashlib
import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

_API = re.compile(r"/api/models/([^/]+/[^/]+)(?:/([a-z-]+)/([^/]+))?")
_FILE = re.compile(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_BATCH = re.compile(r"/([^/]+/[^/]+)\.git/info/lfs/objects/batch")


class FakeHub(ThreadingHTTPServer):
    """Repositories as lists of commits, each a dictionary of files; and a log of requests."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.repositories: dict[str, list[tuple[str, dict[str, bytes]]]] = {}
        self.asked: list[str] = []
        self.announced: dict[str, int] = {}  # sizes that are a lie
        self.large = float("inf")  # bytes from which files are in large file storage (LFS)
        self.objects: dict[str, bytes] = {}  # that storage, by SHA-256

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def storage(self):
        """The address of large files, which is another host for the client."""
        return f"http://localhost:{self.server_port}"

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
        if path.startswith("/lfs/") and path[5:] in self.server.objects:
            return self._answer(200, self.server.objects[path[5:]], {})
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
        if _BATCH.fullmatch(path):
            return self._batch(json.loads(body))
        if path == "/lfs/verify":
            item = json.loads(body)
            stored = self.server.objects.get(item["oid"], b"")
            return self._json({}, 200 if len(stored) == item["size"] else 404)
        found = _API.fullmatch(path)
        if not found or found[1] not in self.server.repositories:
            return self._missing("RepoNotFound")
        if found[2] == "preupload":
            files = [
                {
                    "path": one["path"],
                    "uploadMode": "lfs" if one["size"] >= self.server.large else "regular",
                    "shouldIgnore": False,
                }
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

    def do_PUT(self):
        self.server.asked.append(f"PUT {self.path}")
        data = self.rfile.read(int(self.headers["Content-Length"]))
        oid = self.path.removeprefix("/lfs/")
        if hashlib.sha256(data).hexdigest() != oid:
            return self._json({"error": "the content has another checksum"}, 422)
        self.server.objects[oid] = data
        return self._answer(200, b"", {})

    def _batch(self, item):
        """Say where to upload large files, unless they are there."""
        objects = []
        for one in item["objects"]:
            upload = {"href": f"{self.server.url}/lfs/{one['oid']}"}
            verify = {"href": f"{self.server.url}/lfs/verify"}
            new = one["oid"] not in self.server.objects
            objects.append({**one, "actions": {"upload": upload, "verify": verify}} if new else one)
        return self._json({"transfer": "basic", "objects": objects})

    def _commit(self, repository, body):
        _, before = self.server.files(repository)
        files = dict(before)
        for line in body.splitlines():
            item = json.loads(line)
            if item["key"] == "file":
                files[item["value"]["path"]] = base64.b64decode(item["value"]["content"])
            elif item["key"] == "lfsFile":
                files[item["value"]["path"]] = self.server.objects[item["value"]["oid"]]
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
        if len(files[name]) >= self.server.large:
            return self._elsewhere(oid, files[name])
        etag = hashlib.sha1(files[name]).hexdigest()
        return self._answer(200, files[name], {"X-Repo-Commit": oid, "ETag": f'"{etag}"'})

    def _elsewhere(self, commit, data):
        """Lead to the large file storage."""
        oid = hashlib.sha256(data).hexdigest()
        headers = {
            "Location": f"{self.server.storage}/lfs/{oid}", "X-Repo-Commit": commit,
            "X-Linked-Etag": f'"{oid}"', "X-Linked-Size": str(len(data)),
        }  # fmt: skip
        return self._answer(302, b"", headers)

    def _entry(self, name, data):
        size = self.server.announced.get(name, len(data))
        entry = {"type": "file", "path": name, "size": size, "oid": hashlib.sha1(data).hexdigest()}
        if len(data) >= self.server.large:
            oid = hashlib.sha256(data).hexdigest()
            entry["lfs"] = {"oid": oid, "size": size, "pointerSize": 130}
        return entry

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
