"""An explorer and a headless browser for benchmarks and screenshots."""

from __future__ import annotations

import base64
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--enable-precise-memory-info",
         "--js-flags=--expose-gc", "--window-size=1366,768",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")  # fmt: skip


@contextmanager
def explorer() -> Iterator[tuple[str, int]]:
    """Start ``dotphase explore``; yields its address and process id after the warm-up."""
    command = [sys.executable, "-m", "dotphase", "explore", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[3]
        while not json.load(urllib.request.urlopen(f"{address}api/about"))["ready"]:
            time.sleep(0.2)
        yield address, process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


class Browser:
    """Headless Chromium."""

    def __enter__(self) -> Browser:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or "chromium"
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(
            options=options, service=Service(shutil.which("chromedriver"))
        )
        self.driver.set_script_timeout(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.driver.quit()

    def open(self, address: str) -> None:
        """Load a page and wait for its first numbers."""
        self.driver.get(address)
        while not self.script("return document.querySelector('#numbers tbody tr')"):
            time.sleep(0.1)

    def script(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_script(text, *arguments)

    def script_async(self, text: str, *arguments: Any) -> Any:
        return self.driver.execute_async_script(text, *arguments)

    def slide(self, name: str, value: str) -> None:
        """Move a slider."""
        self.type(f"{name}-slider", value, "input")

    def type(self, name: str, value: str, *events: str) -> None:
        """Set the value of a field and dispatch its events."""
        self.script(
            "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
            "for (const kind of arguments[2]) e.dispatchEvent(new Event(kind, {bubbles: true}));",
            name, value, list(events) or ["input", "change"],
        )  # fmt: skip

    def click(self, name: str) -> None:
        self.script("document.getElementById(arguments[0]).click()", name)

    def collect_garbage(self) -> None:
        self.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})

    def errors(self) -> list[str]:
        """Errors of scripts; refused inputs are answers."""
        entries = [entry for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
        return [entry["message"] for entry in entries if "status of 400" not in entry["message"]]

    def device(self, width: int, height: int, dark: bool) -> None:
        """Emulate a screen of a size, light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def screenshot(self, path: Path, height: int | None = None) -> None:
        """Save the page from its top, all of it or a number of pixels."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"],
                "scale": 1}  # fmt: skip
        taken = self.driver.execute_cdp_cmd(
            "Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip}
        )
        path.write_bytes(base64.b64decode(taken["data"]))
