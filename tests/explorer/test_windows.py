"""Links, several windows and fast users, which leave most work in the background."""

import random

from app_tools import wait_for


def test_two_windows_do_not_disturb_each_other(page):
    page.open()
    page.wait_for_point(alpha=1.5)
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    page.open(alpha="1.9", omega="0.1")
    page.wait_for_point(alpha=1.9, omega=0.1)
    page.slide("alpha", 1.8)
    page.wait_for_point(alpha=1.8, omega=0.1)
    other = page.value("semantic", "train_loss")
    page.browser.switch_to.window(first)
    assert page.is_at(alpha=1.5, omega=0.3)
    assert page.value("semantic", "train_loss") != other
    page.slide("alpha", 1.7)
    page.wait_for_point(alpha=1.7, omega=0.3)


def test_random_interactions_leave_the_page_in_order(page):
    page.open()
    page.wait_for_point(alpha=1.5)
    random.seed(7)
    for _ in range(25):
        name, low, high = random.choice([("alpha", 5, 500), ("omega", 0, 100), ("sigma", 20, 120)])
        page.slide(name, random.randint(low, high) / 100)
        if random.random() < 0.1:
            page.type("#ridge", random.choice(["0.1", "0.001", "bad", "0.01"]))
    page.type("#ridge", "0.01")
    for name, value in (("sigma", 0.5), ("omega", 0.3), ("alpha", 1.5)):
        page.slide(name, value)
    page.wait_for_point(alpha=1.5, omega=0.3, sigma=0.5, ridge=0.01)
    wait_for(lambda: page.value("semantic", "train_loss") is not None, "numbers")
    assert page.message() == ""


def test_permanent_links(page):
    query = {"alpha": "1.75", "omega": "0.25", "sigma": "0.6", "ridge": "0.02", "mixing": "0.7,0.4"}
    page.open(**query, d="123", sentence="7")
    page.wait_for_point(alpha=1.75, omega=0.25, sigma=0.6, ridge=0.02, mixing="0.7,0.4")
    fields = {name: page.field(name) for name in ("alpha", "omega", "sigma", "A11", "A22")}
    assert fields == {"alpha": "1.75", "omega": "0.25", "sigma": "0.6", "A11": "0.7", "A22": "0.4"}
    assert page.field("d") == "123" and page.field("sentence") == "7"
    page.slide("omega", 0.2)
    page.wait_for_point(omega=0.2)
    wait_for(lambda: "omega=0.2&" in page.browser.current_url, "the address to follow")
    address = page.browser.current_url
    page.browser.switch_to.new_window("tab")
    page.browser.get(address)
    page.wait_for_point(alpha=1.75, omega=0.2, sigma=0.6, ridge=0.02, mixing="0.7,0.4")
