"""The server of the page: the standard library's, on the loopback by default.

It answers three kinds of paths: the page and its scripts, ``/api/NAME?query`` (reads by GET,
writes by POST), and plotly's script from the installed package. Invalid input is answered with a
JSON object, which the page shows as text and never as markup.
"""

import json
import re
import time
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from socket import AF_INET6, getfqdn, gethostname
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dotphase.errors import InvalidInput
from dotphase.explorer.routes import Explorer, Route
from dotphase.runtime import interrupt

STATIC = Path(__file__).parent / "static"
#: Longest address and longest body of a request.
MAX_REQUEST = 4096

#: Seconds between two attempts to accept a connection that fails.
BUSY_SECONDS = 0.2

#: Content types of the files of the page.
CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: Headers that let the page load from this server only, and run no scripts but its files.
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def plotly_script() -> Path:
    """Path of the script in the installed plotly, which is not imported."""
    spec = find_spec("plotly")
    for folder in (spec and spec.submodule_search_locations) or ():
        script = Path(folder) / "package_data" / "plotly.min.js"
        if script.is_file():
            return script
    rule = "is not installed: install it with pip install 'dotphase[explore]'"
    raise InvalidInput("explore", "plotly", rule)


class Server(ThreadingHTTPServer):
    """Serves the page on one address; port 0 takes a free port."""

    daemon_threads = True

    def __init__(self, host: str, port: int, explorer: Explorer) -> None:
        self.explorer = explorer
        #: Paths that can be requested, and their files; no other file can be reached.
        self.files = {
            f"/page/{file.name}": file for file in STATIC.iterdir() if file.suffix in CONTENT_TYPES
        }
        self.files |= {"/": STATIC / "index.html", "/plotly.min.js": plotly_script()}
        if ":" in host:
            self.address_family = AF_INET6
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError, ValueError, TypeError) as error:
            rule = f"cannot be listened on ({getattr(error, 'strerror', None) or error})"
            raise InvalidInput("--host/--port", f"{host}:{port}", rule) from None
        host, port = str(self.server_address[0]), int(self.server_address[1])
        shown = f"[{host}]" if ":" in host else host
        self.address = f"http://{shown}:{port}/"
        self.port, bound = port, ip_address(host)
        self.private = bound.is_loopback  #: True if only this machine can reach the page
        #: Names of this machine in the address of a request. A foreign page can make its own name
        #: resolve to this machine, but cannot make the browser send one of these or a bare address.
        self.names = {"localhost", *((shown,) if self.private else (gethostname(), getfqdn()))}

    def is_ours(self, host: str | None) -> bool:
        """True if the header Host is an address of this page."""
        name, colon, port = (host or "").rpartition(":")
        if not colon or port != str(self.port):
            return False
        if name in self.names:
            return True
        try:
            return not self.private and bool(ip_address(name.strip("[]")))
        except ValueError:
            return False

    def get_request(self) -> Any:
        """Accept a connection; wait where the system has no descriptor for it."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(BUSY_SECONDS)  # the connection stays pending and would be tried at once
            raise

    def service_actions(self) -> None:
        """End if the program is interrupted; called several times a second."""
        interrupt.check()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore windows that close during an answer."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "dotphase", ""
    # Without this, small answers wait for a full packet.
    disable_nagle_algorithm = True
    timeout = 60

    def do_GET(self) -> None:
        """Answer with the page, one of its files, or a read."""
        if "Content-Length" in self.headers:
            # The body is not read and must not be taken for the next request.
            self.close_connection = True
        self._answer(self.server.explorer.get_routes)

    def do_POST(self) -> None:
        """Answer a write; a form on a foreign page cannot set its header."""
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,6}", length) or int(length) > MAX_REQUEST:
            self.close_connection = True
            self._error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", "is too long")
            return
        self.rfile.read(int(length))
        if self.headers.get("X-Dotphase") != "page":
            self._error(HTTPStatus.FORBIDDEN, "request", "must come from the page")
            return
        self._answer(self.server.explorer.post_routes)

    def _answer(self, routes: Mapping[str, Route]) -> None:
        if "Transfer-Encoding" in self.headers:
            self.close_connection = True
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        if not self.server.is_ours(host):
            self._error(HTTPStatus.FORBIDDEN, "Host", "must be the address that was printed")
            return
        # Reads start computations, too, which a foreign page must not do.
        is_foreign = self.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none")
        is_foreign |= origin not in (None, f"http://{host}")
        if self.path.startswith("/api/") and is_foreign:
            self._error(HTTPStatus.FORBIDDEN, "request", "must come from the page")
            return
        if len(self.path) > MAX_REQUEST:
            self._error(HTTPStatus.REQUEST_URI_TOO_LONG, "address", "is too long")
            return
        parts = urlsplit(self.path)
        name = parts.path.removeprefix("/api/")
        if name in routes:
            self._call(routes[name], parts.query)
        elif parts.path in self.server.files and self.command == "GET":
            self._file(self.server.files[parts.path])
        else:
            self._error(HTTPStatus.NOT_FOUND, "address", "does not exist on this page")

    def _call(self, route: Route, query: str) -> None:
        try:
            fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=30))
            self._json(HTTPStatus.OK, route(fields))
        except InvalidInput as error:
            self._error(HTTPStatus.BAD_REQUEST, error.field, str(error))
        except ValueError:
            self._error(HTTPStatus.BAD_REQUEST, "address", "cannot be parsed")
        except (ConnectionError, KeyboardInterrupt):
            # The window has gone, or the program ends.
            self.close_connection = True
        except SystemExit as error:
            rule = f"a function of the model called sys.exit({error.code!r})"
            self._error(HTTPStatus.BAD_REQUEST, "model", rule)
        except Exception as error:
            # A defect: its traceback belongs into the terminal, not onto the page.
            traceback.print_exc()
            message = f"failed ({type(error).__name__})"
            self._error(HTTPStatus.INTERNAL_SERVER_ERROR, "server", message)

    def _file(self, path: Path) -> None:
        # Files of the page change with its version; plotly's script is large and does not.
        cache = "max-age=86400" if path.name == "plotly.min.js" else "no-cache"
        self._send(HTTPStatus.OK, CONTENT_TYPES[path.suffix], path.read_bytes(), cache)

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
        """Refuse a malformed request with the headers of all other answers."""
        self.close_connection = True
        # Until a request is parsed it counts as HTTP/0.9, whose answers have no headers.
        self.request_version = "HTTP/1.1"
        self._error(HTTPStatus(code), "request", message or HTTPStatus(code).phrase)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
