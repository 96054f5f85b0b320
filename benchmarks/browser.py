"""A headless Chromium, driven by Selenium: pages opened, looked at, clicked and pictured.

Nothing is downloaded: the browser and its driver, chromedriver, are those that are installed.
"""

from __future__ import annotations

import base64
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from benchmarks.errors import UnavailableError

if TYPE_CHECKING:
    from selenium.webdriver import ChromeService, Remote

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DRIVERS = ("chromedriver",)
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
)
TO_THE_MIDDLE = 'arguments[0].scrollIntoView({block: "center", behavior: "instant"})'
SECONDS = 30.0


class BrowserError(Exception):
    """The browser did not do what it was told; the message says what, and what it answered."""


def executable() -> str:
    """The browser to use: what CHROMIUM says, or the first one found."""
    return _found("browser", "CHROMIUM", BROWSERS)


def driver_executable() -> str:
    """The browser's driver: what CHROMEDRIVER says, or the one found."""
    return _found("driver of the browser", "CHROMEDRIVER", DRIVERS)


class Browser:
    """One page of a browser of its own, as a context manager, which ends its processes.

    No wait is longer than ``seconds``.
    """

    def __init__(self, *, seconds: float = SECONDS):
        self._seconds = seconds
        self._messages: list[str] = []
        self._requests: list[str] = []
        self._driver: Remote | None = None
        self._service: ChromeService | None = None
        self._profile = ""

    def __enter__(self) -> Self:
        browser, driver = executable(), driver_executable()
        self._profile = tempfile.mkdtemp(prefix="lsm-browser-")
        try:
            with _told("the browser cannot be started"):
                self._start(browser, driver)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser with all of its processes, and remove its profile."""
        driver, self._driver = self._driver, None
        service, self._service = self._service, None
        if driver is not None:
            with suppress(BrowserError), _told("the browser does not end"):
                driver.quit()
        if service is not None:
            _end(service.process)
        shutil.rmtree(self._profile, ignore_errors=True)

    @property
    def messages(self) -> list[str]:
        """What the page said on its console, errors of its scripts and the browser's included."""
        for entry in self._log("browser"):
            self._messages.append(f"{entry['level']}: {entry['message']}")
        return self._messages

    @property
    def requests(self) -> list[str]:
        """The addresses that the page asked for, its own among them."""
        for entry in self._log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                self._requests.append(message["params"]["request"]["url"])
        return self._requests

    def open(self, address: str | Path, *, javascript: bool = True) -> None:
        """Load a file or an address, with its scripts or without, and wait until it is there."""
        if isinstance(address, Path):
            address = address.resolve().as_uri()
        for kept in (self.messages, self.requests):
            kept.clear()
        self._command("Emulation.setScriptExecutionDisabled", value=not javascript)
        with _told(f"{address} cannot be opened"):
            self._running.get(address)
        if self.evaluate("location.protocol") == "chrome-error:":
            said = self.evaluate("document.body.innerText").split("\n")
            raise BrowserError(f"{address} cannot be opened: {' '.join(filter(None, said))}")

    def set_viewport(self, width: int, height: int, *, dark: bool = False) -> None:
        """The window's size, and which colours its owner prefers."""
        self._command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """What an expression of JavaScript is in the page, as JSON has it."""
        with _told(expression[:200]):
            return self._running.execute_script(f"return ({expression});")

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that is shown and that this selects."""
        from selenium.webdriver import ActionChains

        with _told(f"no click on {selector}"):
            for element in self._running.find_elements("css selector", selector):
                if element.is_displayed():
                    self._running.execute_script(TO_THE_MIDDLE, element)
                    ActionChains(self._running).click(element).perform()
                    return
        raise BrowserError(f"nothing that is shown is selected by {selector}")

    def press(self, key: str) -> None:
        """Press a key, such as ``Escape``, where the focus is."""
        from selenium.webdriver import ActionChains, Keys

        with _told(f"{key} is not pressed"):
            ActionChains(self._running).send_keys(getattr(Keys, key.upper())).perform()

    def screenshot(
        self, path: Path, *, full_page: bool = False, clip: Sequence[float] | None = None
    ) -> None:
        """Write a PNG of what is shown, of the whole page, or of left, top, width and height."""
        if full_page:
            size = "document.documentElement"
            clip = (0, 0, *self.evaluate(f"[{size}.scrollWidth, {size}.scrollHeight]"))
        more: dict[str, Any] = {}
        if clip is not None:
            names = ("x", "y", "width", "height")
            more["clip"] = dict(zip(names, clip, strict=True)) | {"scale": 1}
            more["captureBeyondViewport"] = True
        answer = self._command("Page.captureScreenshot", format="png", **more)
        path.write_bytes(base64.b64decode(answer["data"]))

    @property
    def _running(self) -> Remote:
        assert self._driver is not None, "a browser runs inside its with statement"
        return self._driver

    def _start(self, browser: str, driver: str) -> None:
        from selenium.webdriver import ChromeOptions, ChromeService, Proxy, Remote
        from selenium.webdriver.common.proxy import ProxyType
        from selenium.webdriver.remote.client_config import ClientConfig

        options = ChromeOptions()
        options.binary_location = browser
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # it has none for root
        for flag in (f"--user-data-dir={self._profile}", *sandbox, *FLAGS):
            options.add_argument(flag)
        self._service = ChromeService(
            executable_path=driver,
            env={**os.environ, "TMPDIR": self._profile},  # what it leaves behind goes with it
            popen_kw={"start_new_session": True},
        )
        self._service.start()
        direct = ClientConfig(  # the driver is on this machine, whatever proxy the network wants
            self._service.service_url,
            proxy=Proxy({"proxyType": ProxyType.DIRECT}),
            timeout=math.ceil(self._seconds) + 5,
        )
        self._driver = Remote(self._service.service_url, options=options, client_config=direct)
        self._driver.set_page_load_timeout(self._seconds)
        self._driver.set_script_timeout(self._seconds)
        self._driver.get("about:blank")  # away from the first page, which asks for much

    def _command(self, method: str, **given: Any) -> dict[str, Any]:
        """Have done what WebDriver has no word for: a command of Chromium's own."""
        with _told(method):
            answer: dict[str, Any] = self._running.execute_cdp_cmd(method, given)
        return answer

    def _log(self, kind: str) -> list[dict[str, Any]]:
        with _told(f"no log of the {kind}"):
            entries: list[dict[str, Any]] = self._running.execute("getLog", {"type": kind})["value"]
        return entries


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what was started as the first of its session, and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _found(what: str, variable: str, names: Sequence[str]) -> str:
    wanted = os.environ.get(variable)
    found = next((path for path in map(shutil.which, [wanted] if wanted else names) if path), None)
    if found is None:
        told = f"{variable}={wanted} is no program" if wanted else f"none of {', '.join(names)}"
        raise UnavailableError(
            f"no {what} ({told}): install one (Debian: apt install chromium chromium-driver), or "
            f"set {variable}"
        )
    return found


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Raise what Selenium raises as a BrowserError that begins with this."""
    try:
        from selenium.common.exceptions import WebDriverException
        from urllib3.exceptions import HTTPError
    except ImportError as error:
        raise UnavailableError("no Selenium: pip install 'lsm-filters[bench]'") from error
    try:
        yield
    except (WebDriverException, HTTPError, OSError) as error:
        said = getattr(error, "msg", None) or str(error)
        raise BrowserError(f"{what}: {said}") from error
