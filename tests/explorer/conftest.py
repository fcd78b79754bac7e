"""A running explorer and a headless browser, once for all tests of the page."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlencode

import pytest

import small_explorer
from app_tools import PATIENCE, wait_for

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1366,900",
    # No network but the loopback: names do not resolve.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@dataclass
class Site:
    """A running explorer."""

    address: str
    process: subprocess.Popen

    def request(self, name, method="GET", headers=None, **query):
        """Status and JSON of the answer to a request."""
        address = f"{self.address}api/{name}?{urlencode(query)}"
        own_headers = {"X-Dotphase": "page"} if headers is None else headers
        request = urllib.request.Request(address, method=method, headers=own_headers)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@pytest.fixture(scope="package")
def site(tmp_path_factory):
    """``dotphase explore`` with small sizes, in a process of its own, after its warm-up.

    All files of this folder share it. It ends with them, since its background work would slow down
    later tests. The tests that leave most of that work come last, in `test_windows`.
    """
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("home")),
        "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
    }
    process = subprocess.Popen(
        [sys.executable, small_explorer.__file__, "--no-browser"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    try:
        line = process.stdout.readline()
        assert "http://127.0.0.1:" in line, line + process.stderr.read()
        site = Site(line.split()[3], process)
        wait_for(lambda: site.request("about")[1]["ready"], "the explorer to be ready", 300)
        yield site
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert errors.strip() == "dotphase: interrupted"


@pytest.fixture(scope="session")
def downloads(tmp_path_factory):
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="package")
def browser(tmp_path_factory, downloads):
    """Headless Chromium with the network off.

    Without a browser tests are skipped, or fail where one is required (continuous integration).
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        if os.environ.get("CI") or os.environ.get("DOTPHASE_BROWSER") == "required":
            pytest.fail("chromium and chromedriver are required but not installed")
        pytest.skip("chromium and chromedriver (Debian: chromium, chromium-driver) are missing")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    preferences = {
        "download.default_directory": str(downloads),
        "download.prompt_for_download": False,
        "profile.default_content_setting_values.automatic_downloads": 1,
    }
    options.add_experimental_option("prefs", preferences)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(driver))
    yield driver
    driver.quit()


class Page:
    """The explorer in the browser, as a user sees and uses it."""

    def __init__(self, browser, site):
        self.browser, self.site = browser, site

    def open(self, **query):
        self.browser.get(f"{self.site.address}?{urlencode(query)}")
        wait_for(lambda: self.script("return document.body.dataset.ready"), "the page")
        return self

    def open_tab(self, tab="transition"):
        """Open a tab of the page, which is loaded only if it is not."""
        if not self.browser.current_url.startswith(self.site.address):
            self.open()
        self.find(f"#tab-{tab}").click()
        return self

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def text(self, selector):
        return self.script(
            "return document.querySelector(arguments[0])?.textContent ?? ''", selector
        )

    def type(self, selector, text, events=("input", "change")):
        """Replace the text of a field and dispatch its events."""
        self.script(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const name of arguments[2]) e.dispatchEvent(new Event(name, {bubbles: true}));",
            selector, text, events,
        )  # fmt: skip

    def slide(self, name, value):
        self.type(f"#{name}-slider", str(value), ["input"])

    def field(self, name):
        """The text of a field."""
        return self.script("return document.getElementById(arguments[0]).value", name)

    def data(self, identity, name):
        script = "return document.getElementById(arguments[0])?.dataset[arguments[1]]"
        return self.script(script, identity, name)

    def stage(self, branch):
        return self.data(f"{branch}-stage", "stage")

    def winner(self):
        return self.data("verdict", "winner")

    def value(self, branch, name):
        """A number of the table with all its digits, or None."""
        text = self.data(f"{branch}-{name}", "value")
        return None if text is None else float(text)

    def is_at(self, **point):
        """True if the numbers of the page belong to a point."""
        shown = json.loads(self.data("numbers", "point") or "{}")
        return all(shown.get(name) == value for name, value in point.items())

    def wait_for_point(self, **point):
        """Wait until the page shows numbers of a point."""
        wait_for(lambda: self.is_at(**point), f"the numbers at {point}")

    def message(self):
        """The message of the page about an invalid input."""
        return self.text("#message:not([hidden])")

    def errors(self):
        """Errors of scripts since the last call; refused inputs are no errors."""
        entries = self.browser.get_log("browser")
        bad = [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
        return [message for message in bad if "status of 400" not in message]


@pytest.fixture
def page(browser, site):
    first = browser.current_window_handle
    page = Page(browser, site)
    browser.get_log("browser")
    yield page
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(first)
    assert page.errors() == []
