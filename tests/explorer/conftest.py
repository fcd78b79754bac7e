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

    def ask(self, name, method="GET", headers=None, **query):
        """Status and JSON of one question."""
        address = f"{self.address}api/{name}?{urlencode(query)}"
        given = {"X-Dotphase": "page"} if headers is None else headers
        request = urllib.request.Request(address, method=method, headers=given)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                return response.status, json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())


@pytest.fixture(scope="package")
def site(tmp_path_factory):
    """``dotphase explore``, of small sizes, in a process of its own, ready to answer.

    One for all files here; it ends with them: its work in the background would slow down all
    tests after it. What leaves most of that work behind is asked last, in `test_windows`.
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
        wait_for(lambda: site.ask("about")[1]["ready"], "the explorer to be ready", 300)
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

    Where a browser is required (in continuous integration) its absence is a failure.
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        if os.environ.get("CI") or os.environ.get("DOTPHASE_BROWSER") == "required":
            pytest.fail("chromium and chromedriver are needed here and are not installed")
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
    """The explorer in the browser, by what a user sees and does."""

    def __init__(self, browser, site):
        self.browser, self.site = browser, site

    def open(self, **query):
        self.browser.get(f"{self.site.address}?{urlencode(query)}")
        wait_for(lambda: self.script("return document.body.dataset.ready"), "the page")
        return self

    def stay(self, tab="transition"):
        """A tab of the page as it is; it is loaded if it is not."""
        if not self.browser.current_url.startswith(self.site.address):
            self.open()
        self.find(f"#tab-{tab}").click()
        return self

    def script(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def find(self, selector):
        return self.browser.find_element("css selector", selector)

    def text(self, selector):
        look = "return document.querySelector(arguments[0])?.textContent ?? ''"
        return self.script(look, selector)

    def type(self, selector, text, events=("input", "change")):
        """Replace what a field holds, as a user does, and leave it."""
        self.script(
            "const e = document.querySelector(arguments[0]); e.value = arguments[1];"
            "for (const name of arguments[2]) e.dispatchEvent(new Event(name, {bubbles: true}));",
            selector, text, events,
        )  # fmt: skip

    def slide(self, name, value):
        self.type(f"#{name}-slider", str(value), ["input"])

    def held(self, name):
        """What a field holds."""
        return self.script("return document.getElementById(arguments[0]).value", name)

    def data(self, identity, name):
        look = "return document.getElementById(arguments[0])?.dataset[arguments[1]]"
        return self.script(look, identity, name)

    def stage(self, branch):
        return self.data(f"{branch}-stage", "stage")

    def winner(self):
        return self.data("verdict", "winner")

    def value(self, branch, name):
        """A number of the table, all its digits; None while there is none."""
        text = self.data(f"{branch}-{name}", "value")
        return None if text is None else float(text)

    def at(self, **point):
        """Whether the numbers shown belong to a point."""
        known = json.loads(self.data("numbers", "point") or "{}")
        return all(known.get(name) == value for name, value in point.items())

    def settle(self, **point):
        """Wait until some numbers of a point are shown."""
        wait_for(lambda: self.at(**point), f"the numbers at {point}")

    def complaints(self):
        """What the page has said against an input."""
        return self.text("#message:not([hidden])")

    def errors(self):
        """Errors of scripts since the last call; refused inputs are answers, not errors."""
        entries = self.browser.get_log("browser")
        bad = [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
        return [message for message in bad if "status of 400" not in message]


@pytest.fixture
def page(browser, site):
    first = browser.current_window_handle
    shown = Page(browser, site)
    browser.get_log("browser")
    yield shown
    for handle in browser.window_handles:
        if handle != first:
            browser.switch_to.window(handle)
            browser.close()
    browser.switch_to.window(first)
    assert shown.errors() == []
