"""The page of a result in a real browser, which opens it, clicks, and takes the screenshots of the docs.

``pytest tests/cli/test_page_in_browser.py --screenshots docs/page`` takes these anew.
"""

import shutil
from pathlib import Path

import pytest

from eqsat import Budget, optimize
from eqsat.cli.page import content

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver")

#: The time that a page may take to load, in milliseconds.
MOST_MS = 2000


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1000,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()


@pytest.fixture(scope="module")
def screenshots(request, tmp_path_factory) -> Path:
    asked = request.config.getoption("--screenshots")
    directory = Path(asked) if asked else tmp_path_factory.mktemp("screenshots")
    directory.mkdir(exist_ok=True)
    return directory


class Page:
    """A page that is open, by what can be seen and clicked."""

    def __init__(self, browser, result, path) -> None:
        self.browser = browser
        browser.get(f"file://{result.show(path)}")

    def all(self, selector: str) -> list:
        return self.browser.find_elements("css selector", selector)

    def classes(self) -> set[str]:
        return {found.get_attribute("id").removeprefix("class-") for found in self.all("#graph .class")}

    def run(self, script: str):
        return self.browser.execute_script(script)

    def take(self, path: Path, selector: str) -> None:
        """A picture of the window from a part of the page on."""
        self.run(f"document.querySelector('{selector}').scrollIntoView()")
        self.browser.save_screenshot(str(path))
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < 200_000


def test_open_click_close_and_find(browser, screenshots, tmp_path):
    result = optimize("(i*32 + j)//32 + where(j*2 < i, min(i, j) % 7, j)", i=(0, 63), j=(0, 31))
    page = Page(browser, result, tmp_path / "page.html")
    assert browser.find_element("id", "summary").text.startswith(f"cost {result.cost_before} -> {result.cost}, ")
    answer = {str(c) for c in result.choice}
    assert page.classes() <= answer
    assert len(page.all("#graph .node.chosen")) == len(page.classes())
    assert len(page.all("#edges path.chosen")) >= len(page.classes()) - 1
    page.take(screenshots / "answer.png", "h1")

    root = str(result.graph.roots[0])
    closed = [button for button in page.all(f"#class-{root} .node:not(.chosen) button") if button.text not in answer]
    wanted = closed[0].text
    closed[0].click()
    assert wanted in page.classes()
    page.take(screenshots / "e-graph.png", "#graph")
    page.all(f"#class-{wanted} .close")[0].click()
    assert wanted not in page.classes()

    page.all("#find")[0].send_keys("min(")
    assert page.classes()
    assert all("min(" in found.text for found in page.all("#graph .class"))
    page.all("#reset")[0].click()
    assert page.classes() <= answer

    name = next(name for name, *_, places in content(result)["rules"] if places)
    next(button for button in page.all("#rules button") if button.text == name).click()
    (place, *_) = page.all("#rules .where button")
    page.take(screenshots / "rules.png", "#saturation")
    place.click()
    assert place.text in page.classes()
    assert page.all("#growth polyline")
    assert browser.get_log("browser") == []


def test_a_graph_of_5000_nodes_opens_in_two_seconds_and_stays_usable(browser, tmp_path):
    texts = [
        f"((i*{n} + j*{m})//{n + m}) % {k} + min(i*{k} + j, j*{n})"
        for n in range(3, 30)
        for m in range(3, 9)
        for k in (5, 7)
    ]
    result = optimize(texts, i=range(64), j=range(32), engine="theory", budget=Budget(seconds=60))
    assert len(result.graph) >= 5000
    page = Page(browser, result, tmp_path / "large.html")
    times = []
    url = browser.current_url
    for _ in range(3):
        browser.get("about:blank")
        browser.get(url)
        times.append(page.run("return performance.getEntriesByType('navigation')[0].duration"))
    assert 0 < min(times) < MOST_MS
    before = page.classes()
    drawn = page.run(
        "const start = performance.now(); document.querySelector('#graph .node:not(.chosen) button').click();"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert drawn < MOST_MS / 4
    page.all("#find")[0].send_keys("//")
    assert page.classes() != before
    assert browser.get_log("browser") == []
