"""The browser that pictures the report: what it tells, what it does, and that it ends."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.browser import Browser, BrowserError, driver_executable, executable
from benchmarks.errors import UnavailableError

PAGE = """<!DOCTYPE html><title>A page</title>
<style>body { margin: 0; background: white }
@media (prefers-color-scheme: dark) { body { background: black } }
#far { position: absolute; left: 30px; top: 3000px; width: 50px; height: 20px }</style>
<button id="far" onclick="this.textContent = 'clicked'">far</button>
<button class="twice" style="display: none">hidden</button>
<button class="twice" onclick="this.textContent = 'seen'">shown</button>
<input onkeydown="this.title = event.key">
<script>console.log('loaded', 7)</script>
"""


def need_browser() -> None:
    """Skip where there is none, unless that is what must not be."""
    try:
        executable()
        driver_executable()
    except UnavailableError as error:
        if os.environ.get("LSM_REQUIRE_BROWSER"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need_browser()
    with Browser() as started:
        yield started


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "a page.html"
    path.write_text(PAGE)
    return path


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


def test_a_file_is_opened_and_its_messages_and_requests_are_told(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    assert browser.evaluate("document.title") == "A page"
    assert [each.partition(":")[0] for each in browser.messages] == ["INFO"]
    assert browser.messages[0].endswith('"loaded" 7')
    assert browser.requests == [page.resolve().as_uri()]


def test_what_a_page_asks_for_and_what_goes_wrong_is_told(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text('<img src="missing.png"><script>throw new Error("on purpose")</script>')
    browser.open(path)
    assert [Path(each).name for each in browser.requests] == ["page.html", "missing.png"]
    told = "\n".join(browser.messages)
    assert "Uncaught Error: on purpose" in told
    assert "missing.png - Failed to load resource" in told
    path.write_text("quiet")
    browser.open(path)
    assert browser.messages == []
    assert len(browser.requests) == 1


def test_clicks_reach_what_is_far_down_and_what_is_shown(browser: Browser, page: Path) -> None:
    browser.set_viewport(800, 600)
    browser.open(page)
    browser.click("#far")
    assert browser.evaluate("document.getElementById('far').textContent") == "clicked"
    browser.click(".twice")
    texts = browser.evaluate("[...document.querySelectorAll('.twice')].map(e => e.textContent)")
    assert texts == ["hidden", "seen"]
    browser.evaluate("document.querySelector('input').focus()")
    browser.press("Escape")
    assert browser.evaluate("document.querySelector('input').title") == "Escape"
    with pytest.raises(BrowserError, match=r"nothing that is shown is selected by #gone"):
        browser.click("#gone")


def test_pictures_have_the_size_of_the_window_the_page_or_the_clip(
    browser: Browser, page: Path, tmp_path: Path
) -> None:
    browser.set_viewport(500, 400)
    browser.open(page)
    target = tmp_path / "shot.png"
    browser.screenshot(target)
    assert png_size(target) == (500, 400)
    browser.screenshot(target, full_page=True)
    width, height = png_size(target)
    assert width == 500
    assert height >= 3020
    browser.screenshot(target, clip=(10, 2000, 120, 90))
    assert png_size(target) == (120, 90)


def test_the_colours_are_those_its_owner_prefers(browser: Browser, page: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    for dark, expected in ((True, "rgb(0, 0, 0)"), (False, "rgb(255, 255, 255)")):
        browser.set_viewport(400, 300, dark=dark)
        browser.open(page)
        assert browser.evaluate(colour) == expected


def test_a_page_opens_with_its_scripts_off_and_on_again(browser: Browser, page: Path) -> None:
    browser.open(page, javascript=False)
    assert browser.messages == []
    browser.open(page)
    assert len(browser.messages) == 1


def test_promises_are_waited_for_and_errors_say_what_was_evaluated(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    assert browser.evaluate("Promise.resolve({deep: [1, null]})") == {"deep": [1, None]}
    with pytest.raises(BrowserError, match=r"nowhere\.at: .*nowhere is not defined"):
        browser.evaluate("nowhere.at")
    with pytest.raises(BrowserError, match=r"missing\.html cannot be opened: .*ERR_FILE_NOT_F"):
        browser.open(page.with_name("missing.html"))
    with pytest.raises(BrowserError, match=r"Page\.captureScreenshot: "):
        browser.screenshot(page, clip=(0, 0, -1, 0))


def test_no_wait_is_longer_than_is_allowed(page: Path) -> None:
    need_browser()
    with Browser(seconds=1.5) as browser:
        browser.open(page)
        with pytest.raises(BrowserError, match=r"new Promise.*: script timeout"):
            browser.evaluate("new Promise(() => {})")


def processes(profile: str) -> list[str]:
    """The command lines in which this profile is named."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = path.read_bytes()
        except OSError:
            continue
        if profile.encode() in command:
            found.append(command.decode(errors="replace"))
    return found


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="processes are seen in /proc")
def test_its_processes_and_its_profile_go_with_it_also_after_an_error() -> None:
    need_browser()
    browser = Browser()
    stack = ExitStack()
    stack.enter_context(browser)
    profile = browser._profile
    assert any("--headless" in each for each in processes(profile))
    stack.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    # Others of the group were killed, too, but whether they are gone already is the system's.
    assert not any("--type=" not in each for each in processes(profile))
    assert not Path(profile).exists()


def test_a_browser_that_ends_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/bin/true")
    need_browser()
    with pytest.raises(BrowserError, match=r"the browser cannot be started: "), Browser():
        pass


def test_nothing_is_downloaded_where_there_is_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMIUM", "/bin/true")
    monkeypatch.setenv("CHROMEDRIVER", "/no/such/program")
    with pytest.raises(UnavailableError, match=r"no driver .*CHROMEDRIVER=/no/such/program is no"):
        Browser().__enter__()


def test_where_there_is_none_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnavailableError, match=r"none of chromium, .*install chromium chromium-dr"):
        Browser().__enter__()
    monkeypatch.setenv("CHROMIUM", "/no/such/program")
    with pytest.raises(UnavailableError, match=r"CHROMIUM=/no/such/program is no program"):
        executable()
