"""The server without a browser: its answers, its refusals, and its isolation from other hosts."""

import socket
import sys
import threading
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

import dotphase as dp
from app_tools import wait_for
from dotphase.cli.main import _run
from dotphase.explorer import server as serving
from small_explorer import FINAL

from .conftest import Site


def test_it_listens_on_the_loopback_only(site):
    port = int(site.address.rstrip("/").rsplit(":", 1)[1])
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    addresses = {row[1] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")}
    assert addresses == {f"0100007F:{port:04X}"}


def test_a_first_answer_becomes_exact(site):
    status, answer = site.request("point", alpha=1.9, omega=0.2, window="w1")
    assert status == 200 and answer["point"]["alpha"] == 1.9

    def final():
        value = site.request("point", alpha=1.9, omega=0.2, window="w1")[1]["value"]["semantic"]
        return value if value and value["stage"] == "final" else None

    found = wait_for(final, "the final numbers")
    settings = {"rtol": FINAL.rtol, "max_log2_points": FINAL.max_log2_points}
    expected = dp.solve(dp.positional_semantic(omega=0.2), 1.9, "semantic", **settings)
    assert found["train_loss"] == pytest.approx(expected.train_loss, rel=1e-9)
    assert found["norms"] == pytest.approx(expected.norms, rel=1e-9)
    first = answer["value"]["semantic"]
    if first is not None:
        assert first["train_loss"] == pytest.approx(expected.train_loss, rel=0.05)


def test_a_missing_branch_is_reported(site):
    def verdict():
        value = site.request("point", alpha=0.3, window="w2")[1]["value"]["semantic"]
        return value if value and value["stage"] != "first look" else None

    assert wait_for(verdict, "the verdict")["on_branch"] is False


@pytest.mark.parametrize(
    ("name", "query", "field"),
    [
        ("point", {"alpha": "nan"}, "alpha"),
        ("point", {"omega": "7"}, "omega"),
        ("curve", {"sigma": "<img src=x onerror=alert(1)>"}, "sigma"),
        ("landscape", {"ridge": "-1"}, "ridge"),
        ("diagram", {"mixing": "/etc/passwd"}, "mixing"),
        ("attention", {"sentence": "1.5"}, "sentence"),
        ("snippets", {"d": "1e3"}, "d"),
        ("job", {"job": "nothing"}, "job"),
        ("dynamics", {"lr": "0"}, "lr"),
        ("dynamics", {"initialization": "elsewhere"}, "initialization"),
        ("histogram", {"sequence": "AAAA"}, "sequence"),
        ("point", {"window": "../x"}, "window"),
        ("point", {"alpha": "1" * 3000}, "alpha"),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(site, name, query, field):
    status, answer = site.request(name, **query)
    assert status == 400
    assert answer["field"] == field and "must be" in answer["error"]
    assert len(answer["error"]) < 400


def test_unknown_and_forbidden_requests(site):
    assert site.request("nothing")[0] == 404
    assert site.request("../server.py")[0] == 404
    assert site.request("train", method="POST", headers={}, d=50)[0] == 403
    assert site.request("train", d=50)[0] == 404  # a write is not a read
    assert site.request("about", headers={"Host": "elsewhere.example"})[0] == 403
    assert site.request("point", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert site.request("point", headers={"Origin": "http://elsewhere.example"})[0] == 403
    assert site.request("about", method="DELETE")[0] == 501
    assert site.request("point", alpha="1" * 5000)[0] == 414
    status, answer = site.request("train", method="POST", d=5)
    assert status == 400 and answer["field"] == "d"


def test_raw_paths_reach_no_other_file(site):
    host, port = site.address.removeprefix("http://").rstrip("/").split(":")
    for path in ("/page/../server.py", "/page/%2e%2e/server.py", "//etc/passwd", "/page/"):
        with socket.create_connection((host, int(port)), timeout=30) as line:
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
            assert line.recv(64).startswith(b"HTTP/1.1 404")


def test_the_page_may_load_from_here_only(site):
    with urllib.request.urlopen(site.address, timeout=30) as response:
        policy = response.headers["Content-Security-Policy"]
        text = response.read().decode()
    assert policy.startswith("default-src 'self'")
    assert "http://" not in text and "https://" not in text


def test_at_most_two_trainings_at_once(site):
    started = [site.request("train", method="POST", d=2000, seeds=16, alpha=4) for _ in range(3)]
    assert [status for status, _ in started] == [200, 200, 400]
    assert "trainings" in started[2][1]["error"]
    for _, answer in started[:2]:
        status, job = site.request("cancel", method="POST", job=answer["job"])
        assert status == 200 and job["state"] == "canceled" and job["ended"]


def test_without_plotly_one_line_names_the_package_to_install(monkeypatch, capsys):
    monkeypatch.setattr(serving, "find_spec", lambda name: None)
    assert _run(["explore", "--no-browser"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert "dotphase[explore]" in err


def test_a_taken_port_is_refused_in_one_line(site, monkeypatch, capsys):
    monkeypatch.setattr("dotphase.cli.options.prepare_jax", lambda: None)
    port = site.address.rstrip("/").rsplit(":", 1)[1]
    assert _run(["explore", "--no-browser", "--port", port]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and port in err


def test_host_names_of_a_page(monkeypatch):
    class Quiet:
        get_routes: ClassVar = {}

    with serving.Server("localhost", 0, Quiet()) as local:
        assert local.private and local.is_ours(f"localhost:{local.port}")
        assert not local.is_ours(f"192.0.2.7:{local.port}") and not local.is_ours("localhost")
    with serving.Server("0.0.0.0", 0, Quiet()) as public:
        assert not public.private
        assert public.is_ours(f"192.0.2.7:{public.port}")
        assert not public.is_ours(f"elsewhere.example:{public.port}")


class Answers:
    """An explorer with one route."""

    def __init__(self, route):
        self.get_routes = {"about": route}


@contextmanager
def served(route, host="127.0.0.1"):
    """A server of one route, in a thread."""
    with serving.Server(host, 0, Answers(route)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_an_exit_of_a_model_is_one_sentence():
    with served(lambda query: sys.exit("bye now")) as server:
        status, answer = Site(server.address, None).request("about")
    assert status == 400 and answer["field"] == "model"
    assert answer["error"] == "a function of the model called sys.exit('bye now')"


@pytest.mark.parametrize("host", ["a" * 300, "..", "nowhere.invalid", "1.2.3.4.5", "\0", "é" * 80])
def test_odd_hosts_are_refused_in_one_line(host):
    with pytest.raises(dp.InvalidInput, match="cannot be listened on"):
        serving.Server(host, 0, None)


@pytest.mark.parametrize(
    ("request_line", "more"),
    [
        (b"POST /api/train HTTP/1.1", b"Content-Length: " + b"9" * 5000),
        (b"POST /api/train HTTP/1.1", b"Content-Length: -1"),
        (b"BREW /api/train HTTP/1.1", b"X: y"),
        (b"GET / HTTP/9.9", b"X: y"),
        (b"GET /" + b"a" * 70000 + b" HTTP/1.1", b"X: y"),
    ],
)
def test_odd_requests_have_the_headers_of_all_answers(site, request_line, more):
    port = int(site.address.rstrip("/").rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as talk:
        talk.sendall(request_line + b"\r\nHost: 127.0.0.1:%d\r\n" % port + more + b"\r\n\r\n")
        answer = b"".join(iter(lambda: talk.recv(65536), b""))
    assert answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5"))
    assert b"Content-Security-Policy" in answer and b"Traceback" not in answer


def test_an_ipv6_address_is_served():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with served(lambda query: "here", "::1") as server:
        assert server.private and server.address == f"http://[::1]:{server.port}/"
        with urllib.request.urlopen(server.address + "api/about", timeout=60) as answer:
            assert answer.read() == b'"here"'


def test_a_server_without_descriptors_waits(monkeypatch):
    pauses, attempts = [], []

    def accept(self):
        attempts.append(self)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(serving.time, "sleep", pauses.append)
    monkeypatch.setattr(socket.socket, "accept", accept)
    with serving.Server("127.0.0.1", 0, Answers(None)) as server:
        for _ in range(3):
            server._handle_request_noblock()  # errors of accept do not end the server
    assert len(attempts) == 3 and pauses == [serving.BUSY_SECONDS] * 3
