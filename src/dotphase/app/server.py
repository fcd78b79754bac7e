"""The server of the page: the standard library's, on the loopback unless told otherwise.

It answers three kinds of paths: the page and its scripts, ``/api/NAME?query`` (reads by GET,
writes by POST), and plotly's script out of the installed package. Errors of the user come back
as one JSON object that the page shows; nothing from outside reaches the page as markup.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dotphase.app.routes import Explorer
from dotphase.errors import InvalidInput

PAGE = Path(__file__).parent / "page"
#: Longest address and longest body that are read.
LONGEST = 4096

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
#: The page may load from this server only, and run no script but its files.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def plotly_script() -> Path:
    """Where the installed plotly keeps its script; it is not imported for that."""
    spec = find_spec("plotly")
    places = list(spec.submodule_search_locations or []) if spec else []
    script = Path(places[0]) / "package_data" / "plotly.min.js" if places else None
    if script is None or not script.is_file():
        raise InvalidInput(
            "explore", "plotly", "is not installed: install it with pip install 'dotphase[explore]'"
        )
    return script


class Server(ThreadingHTTPServer):
    """The page on one address.

    Parameters
    ----------
    host, port : str, int
        Where to listen; port 0 takes a free one.
    explorer : Explorer
        Answers the questions.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, explorer: Explorer) -> None:
        self.explorer = explorer
        self.files = _files()
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InvalidInput(
                "--host/--port", f"{host}:{port}", f"cannot be listened on ({reason})"
            ) from None

    @property
    def address(self) -> str:
        """The address to open."""
        host, port = str(self.server_address[0]), int(self.server_address[1])
        return f"http://{host}:{port}/"

    @property
    def hosts(self) -> set[str] | None:
        """Names under which a page on the loopback may be asked for; None for any.

        A foreign page can make its own name point here; it cannot make the browser send ours.
        """
        host, port = str(self.server_address[0]), int(self.server_address[1])
        if not host.startswith("127."):
            return None
        return {f"{name}:{port}" for name in (host, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A window that was closed while it was answered is nothing to report."""


def _files() -> dict[str, Path]:
    """Everything that can be fetched, by its path: there is no way to other files."""
    served = {f"/page/{path.name}": path for path in PAGE.iterdir() if path.suffix in TYPES}
    return {**served, "/": PAGE / "index.html", "/plotly.min.js": plotly_script()}


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
        self._answer(self.server.explorer.reads)

    def do_POST(self) -> None:
        """Writes; the header cannot be set by a form on a foreign page."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            self._error(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body", "is too long")
            return
        self.rfile.read(int(length))
        if self.headers.get("X-Dotphase") != "page":
            self._error(HTTPStatus.FORBIDDEN, "request", "must come from the page")
            return
        self._answer(self.server.explorer.writes)

    def _answer(self, calls: Mapping[str, Callable[[Mapping[str, str]], Any]]) -> None:
        allowed = self.server.hosts
        if allowed is not None and self.headers.get("Host") not in allowed:
            self._error(HTTPStatus.FORBIDDEN, "Host", "must be the address that was printed")
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

    def _call(self, call: Callable[[Mapping[str, str]], Any], query: str) -> None:
        try:
            asked = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=30))
            self._json(HTTPStatus.OK, call(asked))
        except InvalidInput as error:
            self._error(HTTPStatus.BAD_REQUEST, error.field, str(error))
        except ValueError:
            self._error(HTTPStatus.BAD_REQUEST, "address", "cannot be read")
        except (BrokenPipeError, ConnectionError):
            self.close_connection = True
        except Exception as error:
            traceback.print_exc()  # a defect: in the terminal, not on the page
            self._error(
                HTTPStatus.INTERNAL_SERVER_ERROR, "server", f"failed ({type(error).__name__})"
            )

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
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", cache)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
