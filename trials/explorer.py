"""The explorer with random requests: no 5xx of its own, no foreign page, and it stays alive."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import hostile
from common import Trial, environment, require, run

PATHS = (
    "/", "/plotly.min.js", "/page/style.css", "/page/../server.py", "/api/about", "/api/point",
    "/api/curve", "/api/landscape", "/api/diagram", "/api/attention", "/api/dynamics", "/api/job",
    "/api/snippets", "/api/histogram", "/api/train", "/api/descend", "/api/cancel", "/api/leave",
    "/api/", "/api/../about", "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/page/%00", "*",
    "http://elsewhere.example/", "/api/point#x", "/\\..\\..", "/api/about/", "", "/page/",
)  # fmt: skip
FIELDS = (
    "alpha", "omega", "sigma", "ridge", "mixing", "window", "sentence", "d", "seeds", "seed", "job",
    "lr", "steps", "initialization", "start", "sequence", "student_rank", "nothing",
)  # fmt: skip
METHODS = ("GET",) * 12 + ("POST",) * 5 + ("HEAD", "PUT", "DELETE", "OPTIONS", "BREW", "get", "")
#: Seconds that an answer may take.
PATIENCE = 60
#: Memory that it may grow by, in bytes.
GROWTH = 2**31


def begin() -> tuple[subprocess.Popen[str], int]:
    """An explorer that is ready to answer, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dotphase", "explore", "--no-browser"],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    port = int(line.split()[3].rstrip("/").rsplit(":", 1)[1])
    for _ in range(600):
        if b'"ready": true' in talk(port, f"GET /api/about HTTP/1.1\r\nHost: 127.0.0.1:{port}"):
            return process, port
        time.sleep(0.5)
    raise TimeoutError("the explorer is not ready")


def talk(port: int, request: str, *, half: bool = False) -> bytes:
    """What is answered to one request, after which the connection ends."""
    data = (request + "\r\nConnection: close\r\n\r\n").encode("utf-8", "surrogateescape")
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(data[: len(data) // 2] if half else data)
        if half:
            return b""
        parts = []
        while part := connection.recv(65536):
            parts.append(part)
    return b"".join(parts)


def request(trial: Trial, port: int) -> str:
    """A request at random."""
    query = "&".join(
        f"{trial.choose(FIELDS)}={trial.choose(('1', '0.3', '20', *hostile.NUMBERS))}"
        for _ in range(int(trial.rng.integers(0, 4)))
    )
    safe = query.replace(" ", "+").replace("\x00", "%00").replace("\ud800", "%ed%a0%80")
    path = trial.choose(PATHS) + (f"?{safe}" if query else "")
    lines = [f"{trial.choose(METHODS)} {path} {trial.choose(('HTTP/1.1',) * 9 + ('HTTP/9.9',))}"]
    host = trial.choose((f"127.0.0.1:{port}",) * 6 + (f"localhost:{port}", "elsewhere.example", ""))
    lines.append(f"Host: {host}")
    more = (
        "X-Dotphase: page", "X-Dotphase: page", "X-Dotphase: other",
        "Origin: http://elsewhere.example", "Sec-Fetch-Site: cross-site", "Content-Length: 0",
        "Content-Length: -1", "Content-Length: x",
        f"Content-Length: {hostile.LONG}", "Transfer-Encoding: chunked", "X: " + "y" * 3000,
        "Content-Length: 5\r\n\r\nabcde", "Expect: 100-continue", "Cookie: a=b",
    )  # fmt: skip
    lines += [trial.choose(more) for _ in range(int(trial.rng.integers(0, 3)))]
    return "\r\n".join(lines)


def check(asked: str, answer: bytes) -> None:
    """What every answer promises."""
    if not answer:
        return  # an end without an answer is one too, to what is no request
    answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    head, _, _ = answer.partition(b"\r\n\r\n")
    status = int(head.split()[1]) if head.startswith(b"HTTP/") else 0
    require(status < 500 or status in (501, 505), f"status {status}: {answer[:300]!r}")
    if status:
        require(b"Content-Security-Policy" in head, f"no policy: {head[:300]!r}")
    foreign = "Host: elsewhere" in asked or "cross-site" in asked or "Origin: http://else" in asked
    api = asked.split()[1].startswith("/api/") if len(asked.split()) > 1 else False
    require(not (foreign and api and status == 200), "a foreign page was answered")


def memory(pid: int) -> int:
    """Bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def cases(trial: Trial) -> None:
    process, port = begin()
    try:
        before = memory(process.pid)
        for _ in range(trial.cases):
            asked = request(trial, port)
            with trial.case(asked):
                check(asked, talk(port, asked, half=trial.rng.random() < 0.03))
        with trial.case("soak"):
            _soak(trial, port)
            require(process.poll() is None, "it has ended")
            grown = memory(process.pid) - before
            trial.notes["grown"] = f"{grown / 2**20:.0f} MiB"
            require(grown < GROWTH, f"it has grown by {grown / 2**20:.0f} MiB")
        with trial.case("trainings end with a killed server"):
            _orphans(process, port)
    finally:
        process.kill()
        _, err = process.communicate()
    with trial.case("nothing on the terminal"):
        require("Traceback" not in err, err[-500:])


def _soak(trial: Trial, port: int) -> None:
    """Many windows that move their sliders, and half-open connections meanwhile."""
    open_ones = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for number in range(max(20, trial.cases // 4)):
        alpha = 0.5 + 1.5 * trial.rng.random()
        path = f"/api/point?alpha={alpha:.4f}&window=w{number % 7}"
        asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}"
        require(talk(port, asked).startswith(b"HTTP/1.1 200"), "no answer to a sound question")
    for connection in open_ones:
        connection.close()


def _orphans(process: subprocess.Popen[str], port: int) -> None:
    headers = f"Host: 127.0.0.1:{port}\r\nX-Dotphase: page"
    asked = f"POST /api/train?d=200&alpha=1&seeds=8 HTTP/1.1\r\n{headers}"
    require(talk(port, asked).startswith(b"HTTP/1.1 200"), "no training was begun")
    time.sleep(1)
    mine = [
        int(child)
        for thread in Path(f"/proc/{process.pid}/task").iterdir()
        for child in (thread / "children").read_text().split()
    ]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        if not any(Path(f"/proc/{child}/cmdline").exists() for child in mine):
            return
        time.sleep(0.1)
    require(False, f"processes {mine} live on")


if __name__ == "__main__":
    run(Trial("explorer", "Random requests, many windows, half-open connections.", 1000), cases)
