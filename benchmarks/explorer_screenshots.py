"""Screenshots of the explorer.

python benchmarks/explorer_screenshots.py docs/images/explorer.png        # of the docs
python benchmarks/explorer_screenshots.py docs/images/watch-it-learn.png  # of the docs
python benchmarks/explorer_screenshots.py --all FOLDER                    # every size and theme
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from browsing import Browser, explorer

SIZES = {"lecture": (1400, 900), "zoomed": (700, 450), "phone": (390, 844)}


def complete(browser: Browser) -> bool:
    """True if all views of the open tab are drawn."""
    if not browser.script("return document.getElementById('learn').hidden"):
        has_theory = browser.script("return document.getElementById('learn-verdict').dataset.done")
        run_state = browser.script("return document.getElementById('run-state').dataset.state")
        return has_theory == "true" and run_state == "done"
    text = browser.script(
        "return document.querySelector('#note-landscape').textContent"
        " + document.querySelector('#note-curves').textContent"
    )
    return "minima" in text and "Computing" not in text


def wait(browser: Browser) -> None:
    limit = time.monotonic() + 240
    while not complete(browser) and time.monotonic() < limit:
        time.sleep(0.5)
    time.sleep(1)


def reduce_colors(path: Path, colors: int = 256) -> None:
    """Reduce the colors of a picture, for a small file."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(colors).save(path, optimize=True)


def main(arguments: list[str]) -> None:
    is_all = arguments[0] == "--all"
    target = Path(arguments[-1])
    with explorer() as (address, _), Browser() as browser:
        if not is_all:
            browser.device(1400, 900, dark=False)
            if target.stem == "watch-it-learn":
                browser.open(f"{address}?alpha=1&tab=learn")
                time.sleep(2)  # gradient descent starts when the point rests
                browser.click("run")
                wait(browser)
                browser.type("time", "20", "input")
                browser.screenshot(target, height=860)
            else:
                browser.open(f"{address}?alpha=1.4")
                wait(browser)
                browser.screenshot(target, height=900)
            reduce_colors(target)
            return
        target.mkdir(exist_ok=True)
        for name, (width, height) in SIZES.items():
            for dark in (False, True):
                browser.device(width, height, dark)
                for tab in ("transition", "learn", "histogram"):
                    browser.open(f"{address}?alpha=1.4&d=200&seeds=2&tab={tab}")
                    if tab != "histogram":
                        time.sleep(2)
                        browser.click("train" if tab == "transition" else "run")
                        wait(browser)
                    time.sleep(3)
                    theme = "dark" if dark else "light"
                    browser.screenshot(target / f"{name}-{theme}-{tab}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
