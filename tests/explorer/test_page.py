"""The page in headless Chromium, with the network off."""

import json

import numpy as np
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import dotphase as dp
from app_tools import wait_for
from dotphase.histogram import attention, predict, shipped
from small_explorer import FINAL

CONTROLS = {"slider", "textbox", "button", "combobox", "tab", "progressbar", "link"}


def test_loads_without_the_network_and_requests_nothing_elsewhere(page):
    page.browser.get_log("performance")
    page.open()
    page.wait_for_point(alpha=1.5)
    wait_for(lambda: page.script("return document.querySelector('#plot-diagram .heatmaplayer')"),
             "the phase diagram")  # fmt: skip
    requested = set()
    for entry in page.browser.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            requested.add(event["params"]["request"]["url"])
    assert f"{page.site.address}plotly.min.js" in requested
    # The browser may load pages of its own.
    own = (page.site.address, "data:", "blob:", "chrome:")
    foreign = [url for url in requested if not url.startswith(own)]
    assert foreign == []
    assert page.message() == ""


def test_a_slider_brings_the_numbers_of_dotphase_solve(page):
    page.open()
    page.wait_for_point(alpha=1.5)
    before = page.value("semantic", "train_loss")
    page.slide("alpha", 2)
    page.wait_for_point(alpha=2.0)
    assert page.value("semantic", "train_loss") != before
    expected = dp.solve(
        dp.positional_semantic(),
        2.0,
        "semantic",
        rtol=FINAL.rtol,
        max_log2_points=FINAL.max_log2_points,
    )
    wait_for(lambda: page.stage("semantic") == "final", "the final numbers")
    assert page.value("semantic", "train_loss") == pytest.approx(expected.train_loss, rel=1e-9)
    assert page.value("semantic", "test_error") == pytest.approx(expected.test_error, rel=1e-9)
    for name, value in expected.norms.items():
        assert page.value("semantic", name) == pytest.approx(value, rel=1e-9)
    assert page.winner() == "semantic"
    assert "semantic ✓" in page.text("#head-semantic")
    assert page.text("#semantic-trust").startswith("trusted")
    # Attention and pinned numbers belong to the same solution, also while the other branch is
    # refined.
    final = {"semantic": "final", "positional": "final"}
    wait_for(lambda: {branch: page.stage(branch) for branch in final} == final, "both branches")
    wait_for(lambda: json.loads(page.data("plot-attention", "stages")) == final, "the attention")
    assert json.loads(page.data("plot-attention", "point"))["alpha"] == 2.0
    page.find("#pin").click()
    page.slide("alpha", 1.5)
    page.wait_for_point(alpha=1.5)
    pinned = pytest.approx(1e3 * expected.train_loss, rel=1e-9)
    wait_for(lambda: float(page.data("pinned-semantic-train_loss", "value") or 0) == pinned,
             "the pinned numbers")  # fmt: skip
    wait_for(lambda: "pin=" in page.browser.current_url, "the link to contain it")
    page.find("#pin").click()
    assert page.data("pinned-semantic-train_loss", "value") is None


def test_a_preset_with_few_data_and_the_crossing_of_the_losses(page):
    page.open()
    page.wait_for_point(alpha=1.5)
    page.type("#preset", "Few data")
    page.wait_for_point(alpha=0.8)
    wait_for(lambda: page.winner() == "positional", "the verdict")
    alpha_c = wait_for(lambda: page.data("critical", "value"), "the crossing of the losses")
    assert 1.2 < float(alpha_c) < 1.3
    assert "αc = 1.2" in page.text("#critical") and "ω = 0.3" in page.text("#critical")


def test_a_verdict_is_hedged_where_the_theory_is_not_trusted(page):
    page.open(alpha="0.65", omega="0")
    page.wait_for_point(alpha=0.65, omega=0)
    wait_for(lambda: page.winner() and page.stage(page.winner()) == "final", "the numbers")
    assert page.text(f"#{page.winner()}-trust").startswith("not trusted")
    assert page.text("#verdict").startswith("By this theory, which is not trusted here")


def test_pointer_and_arrow_keys_choose_a_point_on_the_diagram(page):
    page.open()
    page.wait_for_point(alpha=1.5)
    area = wait_for(lambda: page.find("#plot-diagram .nsewdrag"), "the diagram")
    ActionChains(page.browser).move_to_element_with_offset(area, 40, 20).click().perform()
    wait_for(lambda: page.field("alpha") != "1.5", "a move")
    chosen = page.field("alpha")
    omega = float(page.field("omega"))
    assert 1.3 < float(chosen) < 2.2 and 0.1 < omega < 0.3
    # Keys may come faster than answers; each is a step.
    page.find("#plot-diagram").send_keys(Keys.ARROW_RIGHT * 6)
    page.wait_for_point(alpha=round(float(chosen) + 0.12, 2))
    texts = "return document.getElementById('plot-diagram').layout.annotations.map(a => a.text)"
    named = page.script(texts)
    assert "<b>semantic</b>" in named and "<b>positional</b>" in named
    assert "not computed here" not in named
    page.slide("alpha", 4)
    page.wait_for_point(alpha=4.0)
    wait_for(lambda: "not computed here" in page.script(texts), "the label outside the diagram")


def test_alpha_is_played_and_symbols_are_explained(page):
    page.open(alpha="2.45")
    page.wait_for_point(alpha=2.45)
    page.find("#sweep").click()
    assert "Pause" in page.text("#sweep")
    page.wait_for_point(alpha=2.5)
    wait_for(lambda: "Play" in page.text("#sweep"), "the end")
    page.script("document.querySelector('#form .term[data-term=omega]').click()")
    assert page.text("#tip:not([hidden])").startswith("ω")


def test_the_first_screen_holds_map_numbers_curve_and_attention(page):
    size = {"width": 1400, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open()
        page.wait_for_point(alpha=1.5)
        wait_for(lambda: page.stage("semantic") == page.stage("positional") == "final", "numbers")
        wait_for(lambda: page.data("plot-attention", "point"), "the attention")
        bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
        views = ("#plot-diagram", "#numbers", "#plot-curves", "#plot-attention", "#train")
        assert max(page.script(bottom, one) for one in views) <= 900
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_training_drops_dots_on_the_theory(page):
    page.open(alpha="2", d="40", seeds="2")
    page.wait_for_point(alpha=2.0)
    page.find("#train").click()
    going = ("Starting", "Compiling", "Training")
    wait_for(lambda: page.text("#train-state").startswith(going), "progress")
    wait_for(lambda: page.data("plot-landscape", "dots") == "2", "dots that move")
    # The page stays alive while it trains.
    page.slide("alpha", 2.05)
    page.wait_for_point(alpha=2.05)
    wait_for(lambda: page.text("#train-state").startswith("Done: 2 runs"), "the training")
    rows = page.script("return [...document.querySelectorAll('#trained-runs tbody tr')].map("
                       "row => [...row.cells].map(cell => cell.textContent))")  # fmt: skip
    expected = dp.train(dp.positional_semantic(), 2.0, 40, seeds=2)
    learned = [row[4] for row in rows]
    assert learned == [run.mechanism for run in expected.runs]
    assert f"{learned.count('semantic')} semantic" in page.text("#train-state")
    assert [row[:4] for row in rows] == [["2", "40", "semantic", "0"], ["2", "40", "semantic", "1"]]
    for row, run in zip(rows, expected.runs, strict=True):
        assert float(row[5]) == pytest.approx(run.train_loss, rel=1e-3)
    names = "return document.getElementById('plot-curves').data.map(trace => trace.name)"
    assert "trained" in page.script(names)


def test_a_training_can_be_cancelled(page):
    page.open(alpha="2", d="2000", seeds="16")
    page.wait_for_point(alpha=2.0)
    page.find("#train").click()
    wait_for(lambda: page.find("#cancel").is_enabled(), "a training to cancel")
    page.find("#cancel").click()
    wait_for(lambda: page.text("#train-state").startswith("Canceled after"), "the cancellation")
    wait_for(lambda: page.find("#train").is_enabled(), "the next training to be possible")
    assert not page.find("#cancel").is_enabled()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("alpha", "nan"),
        ("alpha", "-1"),
        ("alpha", "1e400"),
        ("omega", "<script>document.title='taken'</script>"),
        ("sigma", "9" * 3000),
        ("ridge", ""),
        ("A11", "2"),
    ],
)
def test_bad_values_get_a_message_and_change_nothing(page, field, text):
    page.open_tab()
    before = page.field(field)
    place = f"return [document.getElementById('{field}-slider')?.value, {TOP}]"
    thumb = page.script(place)
    page.type(f"#{field}", text)
    message = wait_for(page.message, "a message")
    if text in ("nan", "") or field == "A11":  # numbers move the thumb as far as it goes
        assert page.script(place) == thumb
    named = "mixing" if field == "A11" else field
    assert named in message and "must be" in message
    assert "Traceback" not in message
    assert page.browser.title == "dotphase explorer"
    page.type(f"#{field}", before)
    wait_for(lambda: page.message() == "", "the message to go")


def test_a_bad_link_gets_a_message_and_a_page(page):
    page.open(alpha="<script>document.title='taken'</script>", d="x" * 20)
    message = wait_for(page.message, "a message")
    assert "alpha" in message and "must be" in message
    wait_for(lambda: page.value("semantic", "train_loss") is not None, "numbers nevertheless")
    assert page.browser.title == "dotphase explorer"


def test_a_typed_sequence_is_counted_by_both_transformers(page):
    page.open_tab("histogram")
    row = "return [...document.querySelector(`#counts tr[data-row='${arguments[0]}']`).cells]"
    row += ".slice(1).map(cell => cell.textContent).join('')"
    has = "return !!document.querySelector('#counts tr')"
    wait_for(lambda: page.script(has), "the counts")
    counts = [page.script(row, name) for name in ("true count", "semantic", "positional")]
    assert len(set(counts)) == 1  # both networks count the example right
    page.type("#sequence", "aabbccddee")
    wait_for(lambda: page.script(row, "token") == "AABBCCDDEE", "the new sequence")
    assert page.script(row, "true count") == "2222222222"
    for mechanism in ("semantic", "positional"):
        counts = predict(shipped(mechanism), "AABBCCDDEE")
        assert page.script(row, mechanism) == "".join(str(count) for count in counts)
    drawn = page.script("return document.getElementById('plot-histogram').data[0].z")
    np.testing.assert_allclose(drawn, attention(shipped("semantic"), "AABBCCDDEE"), atol=1e-6)
    page.type("#sequence", "<b>AAAA</b>")
    assert "sequence" in wait_for(page.message, "a message")


def test_code_and_downloads(page, downloads):
    page.open(alpha="2")
    page.wait_for_point(alpha=2.0)
    press = "document.querySelector(`#view-${arguments[0]} [data-action=${arguments[1]}]`).click()"
    page.script(press, "numbers", "python")
    wait_for(lambda: "dp.solve(model, alpha=2" in page.text("#copied-text"), "the code")
    box = page.script("return document.getElementById('copied').getBoundingClientRect().toJSON()")
    assert box["top"] >= 0 and box["bottom"] <= page.script("return innerHeight")
    page.script(press, "curves", "command")
    wait_for(lambda: page.text("#copied-text").startswith("dotphase curve"), "the command")
    page.script(press, "diagram", "link")
    wait_for(lambda: "alpha=2&" in page.text("#copied-text"), "the link")
    for view, kind in (("numbers", "csv"), ("curves", "svg"), ("diagram", "png"),
                       ("numbers", "png")):  # fmt: skip
        file = downloads / f"dotphase-{view}.{kind}"
        page.script(press, view, kind)
        wait_for(lambda file=file: file.is_file() and file.stat().st_size > 100, str(file))
    assert (downloads / "dotphase-diagram.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (downloads / "dotphase-curves.svg").read_text()
    lines = (downloads / "dotphase-numbers.csv").read_text().splitlines()
    assert lines[0].startswith("branch,quantity,value")
    losses = [line.split(",") for line in lines if line.startswith("semantic,train_loss,")]
    assert 0.002 < float(losses[0][2]) < 0.004


def test_watch_it_learn(page):
    page.open(alpha="1", tab="learn", steps="5", dimension="60", runs="2")
    page.wait_for_point(alpha=1.0)
    wait_for(lambda: page.find("#run").is_enabled(), "the lesson")
    wait_for(lambda: "trusted" in page.text("#learn-verdict"), "the theory")
    page.find("#run").click()
    first = float(page.data("theory-theta", "value"))
    assert page.field("time") == "5" and 0.1 < first < 0.25
    wait_for(lambda: page.text("#run-state").startswith("Done: 2 runs"), "the runs")
    drawn = page.script("return document.getElementById('plot-learn').data.map(one => one.name)")
    assert drawn.count("runs") == 8  # two of them in each of training loss, test error, theta, m
    matrices = "return [...document.querySelectorAll('#learn-attention table')].map("
    matrices += "one => [...one.querySelectorAll('td')].map(cell => Number(cell.textContent)))"
    assert np.allclose(np.asarray(page.script(matrices)).reshape(6, 2, 2).sum(axis=2), 1, atol=0.02)
    # Choose steps by the keyboard, then play them.
    page.find("#time").send_keys(Keys.HOME)
    assert page.text("#now") == "step 0 of 5"
    assert float(page.data("theory-theta", "value")) == pytest.approx(0.25)
    page.find("#time").send_keys(Keys.ARROW_RIGHT * 4)
    assert page.text("#now") == "step 4 of 5"
    page.find("#play").send_keys(Keys.SPACE)
    wait_for(lambda: page.text("#now") == "step 5 of 5", "the end")
    assert "Play" in page.text("#play")
    # Other inputs remove the results and cancel their computations.
    page.type("#initialization", "random")
    assert "scale/√d = 0.065" in page.text("#note-initialization")
    assert page.find("#scale").is_enabled()
    assert page.text("#learn-verdict").endswith("…")
    page.type("#lr", "-1")
    assert "lr" in wait_for(page.message, "a message")
    assert page.find("#lr").get_attribute("aria-invalid") == "true"


@pytest.mark.parametrize("tab", ["transition", "learn", "histogram"])
def test_every_control_has_a_name_and_the_keyboard_reaches_it(page, tab):
    page.open_tab(tab)
    page.browser.execute_cdp_cmd("Accessibility.enable", {})
    nodes = page.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    seen = 0
    for node in nodes:
        if node.get("ignored") or node["role"].get("value") not in CONTROLS:
            continue
        seen += 1
        assert node["name"]["value"].strip(), node
    assert seen > 4
    reached = set()
    page.script("document.activeElement.blur()")
    for _ in range(70):
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        reached.add(page.script("return document.activeElement.id"))
    wanted = {
        "transition": {"alpha", "omega-slider", "mixing", "plot-diagram", "train", "sentence"},
        "learn": {
            "alpha",
            "omega-slider",
            "initialization",
            "lr",
            "steps",
            "run",
            "other-sentence",
        },
        "histogram": {"theme", "sequence"},
    }
    assert wanted[tab] <= reached


def test_arrow_keys_move_a_slider(page):
    page.open_tab().slide("alpha", 1.5)
    page.wait_for_point(alpha=1.5)
    page.find("#alpha-slider").send_keys(Keys.ARROW_RIGHT)
    page.wait_for_point(alpha=1.51)
    assert page.find("#alpha").get_attribute("value") == "1.51"


#: Place of a card below the message.
TOP = "document.getElementById('view-diagram').getBoundingClientRect().top"


@pytest.mark.parametrize("width", [390, 1366])
def test_nothing_sticks_out_and_the_theme_follows(page, width):
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        page.open_tab()
        for tab in ("learn", "histogram", "transition"):
            page.find(f"#tab-{tab}").click()
            wide = page.script("return document.documentElement.scrollWidth")
            assert wide <= width
        back = "return getComputedStyle(document.body).backgroundColor"
        before = page.script(back)
        table = "document.querySelector('#view-numbers .scroll')"
        wait_for(lambda: page.winner(), "the numbers")
        assert page.script(f"return {table}.scrollWidth <= {table}.clientWidth")
        page.find("#theme").click()
        assert page.script(back) != before
        page.find("#theme").click()
        assert page.script(back) == before
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
