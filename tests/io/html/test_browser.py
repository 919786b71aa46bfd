"""The page of a tree in a real browser: what is drawn, what keys and clicks do, and that large trees do not freeze."""

from __future__ import annotations

import re

import numpy as np
import pytest

import evertree as et
from browser import chromium
from evertree.plotting.dendrogram import PALETTE
from helpers import HOSTILE_KEYS

pytestmark = [pytest.mark.process, pytest.mark.slow]

N_LARGE = 100_000

#: Milliseconds that the page may be busy without a look at the user. Generous: machines of tests are slow.
LONGEST_TASK = 2_000

NOTE_LONG_TASKS = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
}).observe({ type: "longtask", buffered: true });
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def show(browser, tmp_path):
    """Open the page of a tree. It must load nothing but itself, and have nothing to complain about."""
    contexts, complaints, requests = [], [], []

    def opened(h, width=1200, height=800, settings=None, **options):
        path = tmp_path / f"{len(contexts)}.html"
        h.to_html(path, **options)
        context = browser.new_context(viewport={"width": width, "height": height}, **(settings or {}))
        contexts.append(context)
        page = context.new_page()
        page.add_init_script(NOTE_LONG_TASKS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        settle(page)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert len(requests) == len(contexts)


@pytest.fixture(scope="module")
def h():
    """Three groups, and so few points that all of them fit on a high screen."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(scale=0.3, size=(20, 2)) + center for center in ([0, 0], [5, 0], [0, 9])])
    return et.agglomerate(X, keys=[f"p{i:02d}" for i in range(60)])


def settle(page) -> None:
    """Wait until what is due has been drawn."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def press(page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    settle(page)


def n_rows(page) -> int:
    return int(page.get_attribute("#tree", "data-rows"))


def texts(page) -> list[str]:
    return page.locator(".row").all_text_contents()


def item(page) -> dict[str, str]:
    """What a screen reader is told of the selected node."""
    found = page.locator("[role=treeitem]")
    assert page.get_attribute("#tree", "aria-activedescendant") == found.get_attribute("id")
    names = ("aria-level", "aria-expanded", "aria-posinset")
    return {"text": found.text_content(), **{name: found.get_attribute(name) for name in names}}


def detail(page, name: str) -> str:
    return page.locator("#details dt", has_text=re.compile(f"^{name}$")).locator("+ dd").text_content()


def colours(page) -> dict[str, str]:
    """The colour of each key whose row is in view."""
    found = page.eval_on_selector_all(
        ".row",
        "rows => rows.map((row) => [row.textContent, getComputedStyle(row.querySelector('.dot')).backgroundColor])",
    )
    return {key: "#" + "".join(f"{int(part):02X}" for part in re.findall(r"\d+", rgb)) for key, rgb in found}


def contrast(colour: str, surface: str = "#FFFFFF") -> float:
    """As WCAG defines it, from 1 to 21."""

    def luminance(code):
        parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    dark, light = sorted([luminance(colour), luminance(surface)])
    return (light + 0.05) / (dark + 0.05)


def check_colours(shown: dict[str, str], labels: dict[str, int], surface: str = "#FFFFFF") -> None:
    """Each cluster has its colour of the palette, or one like it that can be seen where it is drawn."""
    assert shown.keys() == labels.keys()
    found = {(labels[key] % len(PALETTE) if labels[key] >= 0 else None, colour) for key, colour in shown.items()}
    assert len({number for number, _ in found}) == len({colour for _, colour in found}) == len(found)
    for number, colour in found:
        assert contrast(colour, surface) >= 2.98  # 3, but for what is lost by rounding
        if number is not None and contrast(PALETTE[number], surface) >= 3:
            assert colour == PALETTE[number]


def test_the_top_is_open_and_all_can_be(h, show):
    page = show(h, height=1700)
    assert n_rows(page) == len(texts(page)) == 50
    sizes = [re.match(r"\d+", text) for text in texts(page)]
    assert sum(int(size[0]) if size else 1 for size in sizes) == 60
    page.click("#open-all")
    settle(page)
    order = [h.keys()[i] for i in et.plotting.lay_out(h.linkage_matrix()).bottom_node]
    assert texts(page) == order
    page.click("#close-all")
    settle(page)
    assert n_rows(page) == 1


def test_clicks_open_and_close(h, show):
    page = show(h)
    page.click("#close-all")
    settle(page)
    stage = page.locator("#stage").bounding_box()
    row = page.locator(".row").bounding_box()
    page.mouse.click(row["x"] + 20, row["y"] + 10)
    settle(page)
    assert n_rows(page) == 2
    assert detail(page, "Points") == "60"
    middle = np.mean([box["y"] + 11 for box in (page.locator(".row").nth(i).bounding_box() for i in (0, 1))])
    page.mouse.click(stage["x"] + 16, middle)  # the fork of the root, which is selected already
    settle(page)
    assert n_rows(page) == 1


def test_keys_open_close_and_move(h, show):
    page = show(h)
    page.focus("#tree")
    press(page, "-")
    assert (n_rows(page), item(page)["aria-expanded"]) == (1, "false")
    press(page, "ArrowRight")
    assert (n_rows(page), item(page)["aria-expanded"]) == (2, "true")
    press(page, "ArrowRight")
    assert (item(page)["aria-level"], item(page)["aria-posinset"]) == ("2", "1")
    press(page, "ArrowDown")
    assert item(page)["aria-posinset"] == "2"
    press(page, "Enter")
    assert n_rows(page) == 3
    press(page, "Enter")
    assert n_rows(page) == 2
    press(page, "+", "End")
    last = [h.keys()[i] for i in et.plotting.lay_out(h.linkage_matrix()).bottom_node][-1]
    assert item(page)["text"].startswith(f"{last}, height 0")
    press(page, "Home", "ArrowLeft")
    assert item(page)["aria-level"] == "1"
    press(page, "ArrowLeft")
    assert n_rows(page) == 1


def test_zoom_and_escape(h, show):
    page = show(h)
    page.focus("#tree")
    press(page, "-", "ArrowRight", "ArrowRight", "z", "+")
    size = int(detail(page, "Points"))
    assert n_rows(page) == size < 60
    assert page.is_visible("#zoom-out")
    press(page, "Escape")
    assert n_rows(page) == size + 1
    assert not page.is_visible("#zoom-out")
    press(page, "l")
    assert page.is_checked("#log")
    press(page, "-", "ArrowRight", "ArrowRight", "z")
    elsewhere = [h.keys()[i] for i in et.plotting.lay_out(h.linkage_matrix()).bottom_node][-1]
    page.fill("#search", elsewhere)
    press(page, "Enter")
    assert page.locator(".row.selected").text_content() == elsewhere
    assert not page.is_visible("#zoom-out")


def test_what_opens_stays_where_it_is(show):
    def scrolled():
        return page.evaluate("document.getElementById('tree').scrollTop")

    page = show(et.agglomerate(np.random.default_rng(0).normal(size=(5_000, 2))), height=600)
    page.evaluate("document.getElementById('tree').scrollTop = 300")
    settle(page)
    box = page.locator(".row").nth(8).bounding_box()
    page.mouse.click(box["x"] + 20, box["y"] + 12)
    press(page, "-")
    before, n_points = scrolled(), int(detail(page, "Points"))
    assert n_points > 10
    press(page, "+")
    assert n_rows(page) == 49 + n_points
    assert before + 60 < scrolled() < before + 24 * n_points  # some of the new rows are above
    press(page, "-")
    assert scrolled() == pytest.approx(before, abs=1)


def test_buttons_of_the_details(h, show):
    page = show(h)
    page.focus("#tree")
    press(page, "-")
    for name, expected in (("Open", 2), ("Open all below", 60), ("Close", 1)):
        page.locator("#details button", has_text=re.compile(f"^{name}$")).focus()
        press(page, "Enter")
        assert n_rows(page) == expected
        assert page.evaluate("document.activeElement.id") == "tree"  # the button is another one now


def test_all_can_be_reached_with_tab(h, show):
    page = show(h, partition=h.cut(n_clusters=3))
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.closest('[id]')?.id"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none" or reached[-1] is None
    wanted = {
        "search",
        "cut-range",
        "cut",
        "given",
        "log",
        "open-all",
        "close-all",
        "tree",
        "details-body",
        "cluster-rows",
    }
    assert wanted <= set(reached)
    page.focus("#open-all")
    press(page, "Control+/")
    assert page.evaluate("document.activeElement.id") == "open-all"
    press(page, "/")
    assert page.evaluate("document.activeElement.id") == "search"
    for role, name in (("spinbutton", "Clusters"), ("slider", "Clusters, by slider"), ("searchbox", "Find")):
        assert page.get_by_role(role, name=name, exact=True).count() == 1
    small = "buttons => buttons.filter((made) => made.offsetParent && made.getBoundingClientRect().height < 24).length"
    assert page.eval_on_selector_all("button", small) == 0


def test_search(h, show):
    page = show(h)
    page.click("#close-all")
    press(page, "/")
    page.keyboard.type("P3")
    page.locator("#hits", has_text="10 hits").wait_for()
    assert "10 hits" in texts(page)[0]
    found = []
    for _ in range(11):
        press(page, "Enter")
        found.append(page.locator(".row.selected").text_content())
    assert sorted(found[:10]) == [f"p3{i}" for i in range(10)]
    assert found[10] == found[0]
    press(page, "Shift+Enter")
    assert page.locator(".row.selected .hit").text_content() == found[9]
    assert page.text_content("#hits") == f"10 of 10: {found[9]}"
    press(page, "Escape")
    assert (page.input_value("#search"), page.text_content("#hits")) == ("", "")
    page.fill("#search", "nobody")
    press(page, "Enter")
    assert page.text_content("#hits") == "0 hits"


def test_colours_are_those_of_the_cut(h, show):
    page = show(h, height=1700)
    page.click("#open-all")
    settle(page)
    assert page.input_value("#cut") == "3"  # what was put in
    for k in (3, 1, 12, 60):
        page.fill("#cut", str(k))
        press(page, "Enter")
        labels = h.cut(n_clusters=k)
        check_colours(colours(page), dict(zip(h.keys(), labels.tolist(), strict=True)))
        sizes = sorted(np.bincount(labels).tolist(), reverse=True)[:20]
        assert page.locator("#cluster-rows td:nth-child(2)").all_text_contents() == [str(size) for size in sizes]
    assert page.text_content("#cluster-note") == "and 40 smaller"
    page.fill("#cut", "")
    press(page, "Tab")
    assert page.input_value("#cut") == "60"


def test_colours_are_those_that_were_given(h, show):
    labels = h.cut(n_clusters=4, min_cluster_size=4)
    labels[[5, 25]] = -1
    labels[labels == 2] = 14  # ids need not be 0, 1, …
    page = show(h, height=1700, partition=labels)
    page.click("#open-all")
    settle(page)
    given = colours(page)
    check_colours(given, dict(zip(h.keys(), labels.tolist(), strict=True)))
    n_noise = int((labels == -1).sum())
    assert f"in no cluster: {n_noise} points" in page.text_content("#legend")
    page.fill("#cut", "2")
    press(page, "Enter")
    assert colours(page) != given
    page.click("#given")
    settle(page)
    assert colours(page) == given


def test_a_row_of_the_table_leads_to_its_cluster(h, show):
    labels = h.cut(n_clusters=3)
    ids = [123456789 + i for i in range(60)]
    groups = [f"group {i // 20}" for i in range(60)]
    page = show(h, partition=labels, columns={"group": groups, "value": range(60), "id": ids})
    page.click("#close-all")
    page.locator("#cluster-rows tr").nth(1).locator("td").nth(2).click()
    settle(page)
    name = page.locator("#cluster-rows th").nth(1).text_content()
    members = np.flatnonzero(labels == int(name))
    assert (detail(page, "Cluster"), detail(page, "Points")) == (name, str(members.size))
    assert detail(page, "group") == f"group {name}"
    assert detail(page, "value") == f"mean {members.mean():g}, {members.min()} to {members.max()}"
    prototype = page.locator("#cluster-rows tr").nth(1).locator("td").nth(3).text_content()
    assert detail(page, "Prototype") == prototype
    assert prototype in [h.keys()[i] for i in members]
    page.locator("#details button", has_text=prototype).first.click()
    settle(page)
    assert page.locator(".row.selected").text_content() == prototype
    assert detail(page, "id") == str(ids[h.keys().index(prototype)])


@pytest.mark.parametrize("shape", ["random", "path"])
def test_large_trees_do_not_freeze(shape, show):
    X = np.random.default_rng(0).normal(size=(N_LARGE, 1))
    if shape == "random":
        h = et.Hierarchy.random(X)
    else:
        steps = np.arange(N_LARGE - 1)
        Z = np.column_stack([steps + 1, N_LARGE + steps - 1, steps + 1, steps + 2]).astype(float)
        Z[0, :2] = [0, 1]
        h = et.Hierarchy.from_linkage(Z, X)
    page = show(h)
    assert n_rows(page) == 50
    page.click("#open-all")
    settle(page)
    assert n_rows(page) == N_LARGE
    drawn = []
    for share in (0.5, 1.0, 0.25):
        page.evaluate(f"tree => tree.scrollTop = {share} * tree.scrollHeight", page.query_selector("#tree"))
        settle(page)
        drawn.append(texts(page))
        assert len(drawn[-1]) < 60
    assert not set(drawn[0]) & set(drawn[1])
    page.fill("#search", "77777")
    press(page, "Enter")
    assert page.locator(".row.selected").text_content() == "77777"
    page.fill("#search", "9")
    press(page, "Enter", "Enter")
    page.fill("#cut", "1000")
    press(page, "Enter")
    page.focus("#tree")
    press(page, "Home", "PageDown", "ArrowDown", "l", "ArrowLeft", "ArrowLeft")
    assert n_rows(page) < N_LARGE
    page.wait_for_timeout(100)  # for the last of the observer's entries
    assert page.evaluate("window.longest") < LONGEST_TASK


def test_a_phone(h, show):
    columns = {"a name " * 20: ["a value " * 20] * 60}
    page = show(h, 360, 640, {"has_touch": True}, title="A long title " * 5 + "w" * 80, columns=columns)
    page.click("#open-all")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("#details dd", has_text="a value").bounding_box()["width"] > 100
    row = page.locator(".row").nth(3)
    box = row.bounding_box()
    page.touchscreen.tap(box["x"] + 30, box["y"] + 11)
    settle(page)
    assert page.locator(".row.selected").count() == 1


def test_dark_colours(h, show):
    def brightness(page, what):
        rgb = page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(map(int, re.findall(r"\d+", rgb)[:3]))

    light, dark = show(h), show(h, settings={"color_scheme": "dark"})
    assert brightness(light, "backgroundColor") > 600 > 200 > brightness(light, "color")
    assert brightness(dark, "backgroundColor") < 200 < 600 < brightness(dark, "color")
    dark.fill("#cut", "60")
    press(dark, "Enter")
    before = colours(dark)
    assert min(contrast(colour, "#1E2023") for colour in before.values()) > 2.98
    dark.emulate_media(color_scheme="light")
    settle(dark)
    assert colours(dark) != before


def test_colours_of_the_system(h, show):
    page = show(h, height=1700, settings={"forced_colors": "active"})
    page.fill("#search", "p1")
    press(page, "Enter")
    assert len(set(colours(page).values())) == 3
    background = "rows => rows.map((row) => getComputedStyle(row).backgroundColor)"
    assert len(set(page.eval_on_selector_all(".row", background))) == 2  # the selected one has another
    assert len(set(page.eval_on_selector_all(".row .key", background))) == 2  # and so have those that were found


def test_paper_is_white_and_narrow(h, show):
    page = show(h, settings={"color_scheme": "dark"})
    screen = page.evaluate("document.getElementById('canvas').width")
    before = colours(page)
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.getElementById('canvas').width") == 678  # without the frame
    assert page.locator(".row").count() > 30
    assert min(contrast(colour) for colour in colours(page).values()) > 2.98
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    settle(page)
    assert page.evaluate("document.getElementById('canvas').width") == screen
    assert colours(page) == before


@pytest.mark.parametrize("heights", [[5e-324, 1e-323, 2e-323], [1e-300, 1e-100, 3e149]])
def test_heights_of_any_size(heights, show):
    d = np.triu([[0, *heights]] * 4, 1)
    page = show(et.agglomerate(d + d.T, linkage="single", metric="precomputed"))
    page.focus("#tree")
    press(page, "l")
    # The fork of the root is 16 pixels from the left edge. Of four rows, each 24 pixels high, it goes from the first to
    # the middle between the second and what is between the third and the fourth: 42 pixels.
    pixels = "canvas => Array.from(canvas.getContext('2d').getImageData(16, 34, 1, 96).data)"
    assert np.count_nonzero(page.eval_on_selector("#canvas", pixels)[3::4]) in range(40, 48)  # their opacity


def test_hostile_keys_are_text(show):
    h = et.Hierarchy()
    h.insert(np.arange(float(len(HOSTILE_KEYS))).reshape(-1, 1), keys=HOSTILE_KEYS)
    page = show(h, title=HOSTILE_KEYS[0], columns={HOSTILE_KEYS[2]: HOSTILE_KEYS})
    shown = {str(key).replace("\ud800", "\ufffd") or '""' for key in HOSTILE_KEYS}
    assert {text.replace("\ud800", "\ufffd") for text in texts(page)} == shown
    assert page.text_content("h1") == HOSTILE_KEYS[0]
    page.focus("#tree")
    press(page, "Home", *["ArrowDown"] * len(HOSTILE_KEYS))
    assert page.locator("img, b, script").count() == 2  # the data and the script of the page
    page.fill("#search", "onerror")
    press(page, "Enter")
    assert detail(page, "Key") == HOSTILE_KEYS[2]
    page.fill("#search", "e\u0301")  # which looks like the é of a key
    press(page, "Enter")
    assert page.text_content("#hits").startswith("1 of 1")


def test_an_empty_tree(show):
    page = show(et.Hierarchy())
    assert page.locator("main").inner_text() == "The hierarchy is empty."
    press(page, "/", "Escape")


@pytest.mark.parametrize("n", [1, 2])
def test_small_trees(n, show):
    h = et.Hierarchy()
    h.insert(np.zeros((n, 1)))  # so that all heights are 0
    page = show(h)
    assert n_rows(page) == len(texts(page)) == n
    page.focus("#tree")
    press(page, *["ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft", "Enter", "+", "-", "z", "l", "End", "Escape"])
    page.click("#open-all")
    page.fill("#cut", "7")
    press(page, "Enter")
    assert page.input_value("#cut") == ("2" if n == 2 else "1")
    assert n_rows(page) == n
