"""The report in a real browser: Debian's `chromium` and `chromium-driver`, driven by Selenium; `make test-browser` runs it."""

import shutil

import numpy as np
import pytest
from selenium import webdriver

import quenched as qd
from fits import THREE_ROUNDS, make_fit
from quenched.report import Document, figure, table, verdict_box, write_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
EVIL = "<img src=x onerror=document.title='owned'>"
WIDE, PHONE = (1500, 1000), (390, 844)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
)

# Contrast of every text with the background behind it, by the formula of the Web Content Accessibility Guidelines.
CONTRAST = """
const parse = (text) => { const p = text.match(/[\\d.]+/g).map(Number); return p.length < 4 ? [...p, 1] : p; };
const light = ([r, g, b]) => {
  const part = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.99) return c; } return [255, 255, 255, 1]; };
const found = [];
for (const e of document.querySelectorAll("main *, nav *")) {
  const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.checkVisibility() || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(e.tagName)) continue;
  const a = light(parse(getComputedStyle(e).color)), b = light(behind(e));
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + ": " + e.textContent.slice(0, 40)]);
}
return found.sort((x, y) => x[0] - y[0]);
"""


@pytest.fixture(scope="module")
def browser():
    if not (CHROMIUM and DRIVER):
        pytest.fail("no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A small fit with a name that would like to be run, one with thousands of numbers, and a page as `reproduce` writes them."""
    folder = tmp_path_factory.mktemp("pages")
    small = make_fit({"mu": 4.0, "tau": 3.0, EVIL: np.zeros(3)}, transforms={"tau": qd.positive}, rounds=THREE_ROUNDS)
    random = np.random.default_rng(5)
    large = make_fit({"effect": random.standard_normal(3000), "level": 1.0, "sd": 1.0}, rounds=THREE_ROUNDS)
    other = Document("The paper, reproduced", subtitle="a selection").section(
        "", verdict_box("caution", "1 of 3 differ", "Words.")
    )
    for heading in ("Densities", "Regression", "Faces"):
        rows = [[f"set {i}", f"{i % 7}.5 ± 0.1", i] for i in range(30)]
        other = other.section(heading, "A paragraph.", table(["data", "error", "rows"], rows, caption="Ours."))
    from quenched.plots import plot_monitor

    other = other.section("Picture", figure(plot_monitor(small).figure, "The monitor."))
    return {
        "small": write_report(small, folder / "small.html", EVIL),
        "large": write_report(large, folder / "large.html", "Effects"),
        "other": other.write(folder / "other.html"),
    }


@pytest.fixture(params=["small", "large", "other"])
def page(request, browser, pages):
    return show(browser, pages[request.param])


def show(browser, path, size=WIDE, dark=False):
    browser.get_log("browser")
    width, height = size
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    browser.get(path.as_uri())
    return browser


def column(browser, holder, place):
    return browser.execute_script(
        "return [...arguments[0].querySelectorAll('tbody tr')].map((r) => r.cells[arguments[1]].textContent)",
        holder,
        place,
    )


def tables(browser):
    return browser.find_elements("css selector", ".table")


def table_of(browser, heading):
    return next(one for one in tables(browser) if heading in one.find_element("css selector", "thead").text)


def test_it_loads_without_a_word_on_the_console(page):
    assert page.get_log("browser") == []


def test_nothing_is_asked_of_the_network(page):
    asked = page.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert [name for name in asked if not name.startswith("data:")] == []


def test_names_are_shown_and_not_run(browser, pages):
    show(browser, pages["small"])
    assert browser.title == EVIL
    assert EVIL in browser.find_element("css selector", "h1").text
    assert f"{EVIL}[0]" in column(browser, table_of(browser, "standard deviation"), 0)


def test_the_verdict_is_in_sight_at_once(page):
    box = page.find_element("css selector", ".verdict")
    assert box.location["y"] + box.size["height"] < WIDE[1]
    assert page.execute_script(
        "return !!(arguments[0].compareDocumentPosition(document.querySelector('table, figure')) & 4)", box
    )


def test_the_contents_lead_to_every_section(page):
    links = page.find_elements("css selector", "nav.contents a")
    headings = [heading.text for heading in page.find_elements("css selector", "h2")]
    assert [link.text for link in links] == headings
    links[-1].click()
    assert page.execute_script("return location.hash") == f"#section-{len(headings)}"


def test_tables_sort_by_numbers_and_back(browser, pages):
    show(browser, pages["other"])
    holder = tables(browser)[0]
    button = holder.find_elements("css selector", "th button")[1]
    button.click()
    up = [float(text.split()[0]) for text in column(browser, holder, 1)]
    assert up == sorted(up)
    assert len(up) == 30
    button.click()
    down = [float(text.split()[0]) for text in column(browser, holder, 1)]
    assert down == sorted(up, reverse=True)
    assert holder.find_elements("css selector", "th")[1].get_attribute("aria-sort") == "descending"


def test_thousands_of_numbers_are_searched_and_sorted_whole(browser, pages):
    show(browser, pages["large"])
    holder = table_of(browser, "standard deviation")
    assert len(column(browser, holder, 0)) == 200
    more = holder.find_element("css selector", "button.more")
    more.click()
    assert len(column(browser, holder, 0)) == 400
    search = holder.find_element("css selector", "input.search")
    search.send_keys("effect[2999")
    assert column(browser, holder, 0) == ["effect[2999]"]
    assert not more.is_displayed()
    search.clear()
    search.send_keys("l")  # in "level" alone
    assert column(browser, holder, 0) == ["level"]
    browser.execute_script("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", search)
    holder.find_elements("css selector", "th button")[1].click()
    means = [float(text) for text in column(browser, holder, 1)]
    assert means == sorted(means)
    assert means[0] < -2.5  # of all three thousand, not of those that were shown


def test_every_figure_is_there_and_enlarges(page):
    sizes = page.execute_script("return [...document.querySelectorAll('main img')].map((i) => i.naturalWidth)")
    assert sizes
    assert min(sizes) > 100
    button = page.find_elements("css selector", "figure button.enlarge")[0]
    before = button.find_element("css selector", "img").size["width"]
    page.execute_script("arguments[0].click()", button)
    large = page.find_element("css selector", "dialog img")
    assert page.find_element("css selector", "dialog").is_displayed()
    assert large.size["width"] > 1.3 * before
    large.click()
    assert not page.find_element("css selector", "dialog").is_displayed()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["small", "large", "other"])
def test_all_text_has_contrast(browser, pages, name, dark):
    show(browser, pages[name], dark=dark)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") is not dark
    found = browser.execute_script(CONTRAST)
    assert len(found) > 30
    assert found[0][0] >= 4.5, found[:5]


def test_the_reader_can_choose_light_or_dark(browser, pages):
    show(browser, pages["small"])
    browser.find_element("css selector", "button.theme").click()
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert browser.execute_script(CONTRAST)[0][0] >= 4.5
    browser.find_element("css selector", "button.theme").click()
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["small", "large", "other"])
def test_a_phone_scrolls_downwards_only(browser, pages, name):
    show(browser, pages[name], size=PHONE)
    wide, shown = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert shown == PHONE[0]
    assert wide <= shown


def test_a_wide_screen_is_used(browser, pages):
    show(browser, pages["large"])
    used = browser.execute_script("return document.querySelector('.page').getBoundingClientRect().width")
    assert used > 0.9 * WIDE[0]


def test_a_table_of_thirty_rows_is_shown_whole(browser, pages):
    show(browser, pages["other"])
    whole, seen = browser.execute_script(
        "const box = document.querySelector('.scroll'); return [box.scrollHeight, box.clientHeight]"
    )
    assert whole <= seen


def test_on_paper_everything_is_there(browser, pages):
    show(browser, pages["large"], dark=True)
    style = lambda name, key: browser.execute_script(f"return getComputedStyle(document.querySelector('{name}')).{key}")
    assert style(".scroll.tall", "maxHeight") != "none"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert style(".scroll.tall", "maxHeight") == "none"
    assert style("th", "position") == "static"  # or the heading has no words on the second sheet
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not browser.find_element("css selector", "nav.contents").is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
