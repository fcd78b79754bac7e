"""The server of the page: the standard library's, on the loopback unless told otherwise.

It answers three kinds of paths: the page and its scripts, ``/api/NAME?query`` (reads by GET,
writes by POST), and plotly's script out of the installed package. Errors of the user come back
as one JSON object that the page shows; nothing from outside reaches the page as markup.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from socket import getfqdn, gethostname
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dotphase.errors import InvalidInput
from dotphase.explorer.routes import Explorer, Read
from dotphase.runtime import interrupt

PAGE = Path(__file__).parent / "static"
#: Longest address and longest body that are read.
LONGEST = 4096

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: The page may load from this server only, and run no script but its files.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def plotly_script() -> Path:
    """Where the installed plotly keeps its script; it is not imported for that."""
    spec = find_spec("plotly")
    for place in (spec and spec.submodule_search_locations) or ():
        script = Path(place) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    rule = "is not installed: install it with pip install 'dotphase[explore]'"
    raise InvalidInput("explore", "plotly", rule)


class Server(ThreadingHTTPServer):
    """The page on one address, where `explorer` answers; port 0 takes a free one."""

    daemon_threads = True

    def __init__(self, host: str, port: int, explorer: Explorer) -> None:
        self.explorer = explorer
        # Everything that can be fetched, by its path: there is no way to other files.
        self.files = {f"/page/{file.name}": file for file in PAGE.iterdir() if file.suffix in TYPES}
        self.files |= {"/": PAGE / "index.html", "/plotly.min.js": plotly_script()}
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError, ValueError, TypeError) as error:
            rule = f"cannot be listened on ({getattr(error, 'strerror', None) or error})"
            raise InvalidInput("--host/--port", f"{host}:{port}", rule) from None
        host, port = str(self.server_address[0]), int(self.server_address[1])
        self.address = f"http://{host}:{port}/"
        self.port, bound = port, ip_address(host)
        #: Whether only this machine can reach the page.
        self.private = bound.is_loopback
        # Names under which the page may be asked for. A foreign page can make its own name point
        # here; it cannot make the browser send ours, or a bare address.
        own = (host,) if self.private else (gethostname(), getfqdn())
        self.names = {"localhost", *own}

    def is_ours(self, host: str | None) -> bool:
        """Whether the header Host is an address of this page."""
        name, colon, port = (host or "").rpartition(":")
        if not colon or port != str(self.port):
            return False
        if name in self.names:
            return True
        try:
            return not self.private and bool(ip_address(name.strip("[]")))
        except ValueError:
            return False

    def service_actions(self) -> None:
        """Called several times a second: whether to end."""
        interrupt.check()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A window that was closed while it was answered is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dotphase", ""
    # Small answers must not wait for a full packet.
    disable_nagle_algorithm = True
    timeout = 60

    def do_GET(self) -> None:
        """The page, its files, and reads."""
        if "Content-Length" in self.headers:
            self.close_connection = True  # what follows is not read, and is no request
        self._answer(self.server.explorer.reads)

    def do_POST(self) -> None:
        """Writes; the header cannot be set by a form on a foreign page."""
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,6}", length) or int(length) > LONGEST:
            self.close_connection = True
            self._error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", "is too long")
            return
        self.rfile.read(int(length))
        if self.headers.get("X-Dotphase") != "page":
            self._error(HTTPStatus.FORBIDDEN, "request", "must come from the page")
            return
        self._answer(self.server.explorer.writes)

    def _answer(self, calls: Mapping[str, Read]) -> None:
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        if not self.server.is_ours(host):
            self._error(HTTPStatus.FORBIDDEN, "Host", "must be the address that was printed")
            return
        # Reads start work too: a foreign page shall not.
        foreign = self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        if self.path.startswith("/api/") and (foreign or origin not in (None, f"http://{host}")):
            self._error(HTTPStatus.FORBIDDEN, "request", "must come from the page")
            return
        if len(self.path) > LONGEST:
            self._error(HTTPStatus.REQUEST_URI_TOO_LONG, "address", "is too long")
            return
        parts = urlsplit(self.path)
        name = parts.path.removeprefix("/api/")
        if name in calls:
            self._call(calls[name], parts.query)
        elif parts.path in self.server.files and self.command == "GET":
            self._file(self.server.files[parts.path])
        else:
            self._error(HTTPStatus.NOT_FOUND, "address", "there is nothing here")

    def _call(self, call: Read, query: str) -> None:
        try:
            asked = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=30))
            self._json(HTTPStatus.OK, call(asked))
        except InvalidInput as error:
            self._error(HTTPStatus.BAD_REQUEST, error.field, str(error))
        except ValueError:
            self._error(HTTPStatus.BAD_REQUEST, "address", "cannot be read")
        except (ConnectionError, KeyboardInterrupt):
            # The window has gone, or the program ends.
            self.close_connection = True
        except Exception as error:
            traceback.print_exc()  # a defect: in the terminal, not on the page
            failed = f"failed ({type(error).__name__})"
            self._error(HTTPStatus.INTERNAL_SERVER_ERROR, "server", failed)

    def _file(self, path: Path) -> None:
        # Files of the page may change with the next version; plotly's is large and does not.
        cache = "max-age=86400" if path.name == "plotly.min.js" else "no-cache"
        self._send(HTTPStatus.OK, TYPES[path.suffix], path.read_bytes(), cache)

    def _json(self, status: HTTPStatus, value: Any) -> None:
        body = json.dumps(value, allow_nan=False).encode()
        self._send(status, "application/json", body, "no-store")

    def _error(self, status: HTTPStatus, field: str, message: str) -> None:
        self._json(status, {"error": message, "field": field})

    def _send(self, status: HTTPStatus, kind: str, body: bytes, cache: str) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": cache}
        for name, value in (headers | HEADERS).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the standard library refuses has the same headers as everything else."""
        self.close_connection = True
        # Before a request is understood it counts as one of HTTP/0.9, which gets no headers at all.
        self.request_version = "HTTP/1.1"
        self._error(HTTPStatus(code), "request", message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
