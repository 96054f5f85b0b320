"""A headless Chromium, driven over its own pipe: pages opened, looked at, clicked and pictured.

Commands of the DevTools protocol are JSON that ends with a zero byte; the browser reads them from
its file descriptor 3 and answers on 4. No port is opened and no library is needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.errors import UnavailableError

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
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
    "about:blank",
)
SECONDS = 30.0
CHUNK = 1 << 16

# Puts its two pipes where the browser looks for them, and becomes the browser.
BECOME = """
import os, sys
for source, target in zip(map(int, sys.argv[1:3]), (3, 4)):
    os.dup2(source, target)
    os.close(source)
os.execv(sys.argv[3], sys.argv[3:])
"""


class BrowserError(Exception):
    """The browser did not do what it was told; the message says what, and what it answered."""


def executable() -> str:
    """The browser to use: what CHROMIUM says, or the first one found."""
    wanted = os.environ.get("CHROMIUM")
    found = next((path for path in map(shutil.which, [wanted] if wanted else NAMES) if path), None)
    if found is None:
        told = f"CHROMIUM={wanted} is no program" if wanted else f"none of {', '.join(NAMES)}"
        raise UnavailableError(
            f"no browser ({told}): install one (Debian: apt install chromium), or set CHROMIUM"
        )
    return found


class Browser:
    """One page of a browser of its own, as a context manager, which ends its processes.

    ``messages`` is what the page said on its console, errors of its scripts and of the browser
    included; ``requests`` are the addresses that it asked for, its own among them. No wait is
    longer than ``seconds``.
    """

    def __init__(self, *, seconds: float = SECONDS):
        self.messages: list[str] = []
        self.requests: list[str] = []
        self._seconds = seconds
        self._events: list[str] = []
        self._received = b""
        self._last = 0
        self._session: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._pipes: list[int] = []
        self._profile = ""

    def __enter__(self) -> Self:
        path = executable()
        self._profile = tempfile.mkdtemp(prefix="lsm-browser-")
        try:
            self._start(path)
            self._attach()
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
        if self._process is not None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except ProcessLookupError:
                self._process.kill()
            self._process.wait()
            self._process = None
        while self._pipes:
            os.close(self._pipes.pop())
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, address: str | Path, *, javascript: bool = True) -> None:
        """Load a file or an address, with its scripts or without, and wait until it is there."""
        if isinstance(address, Path):
            address = address.resolve().as_uri()
        for kept in (self.messages, self.requests, self._events):
            kept.clear()
        self._command("Emulation.setScriptExecutionDisabled", value=not javascript)
        answer = self._command("Page.navigate", url=address)
        if answer.get("errorText"):
            raise BrowserError(f"{address} cannot be opened: {answer['errorText']}")
        self._wait(lambda: "Page.loadEventFired" in self._events, f"{address} to be loaded")

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
        answer = self._command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(f"{expression[:200]}: {_thrown(answer['exceptionDetails'])}")
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click into the middle of the first element that is shown and that this selects."""
        place = self.evaluate(
            f"""(() => {{
                for (const found of document.querySelectorAll({json.dumps(selector)})) {{
                    if (!found.getClientRects().length) continue;
                    found.scrollIntoView({{block: "center", behavior: "instant"}});
                    const box = found.getBoundingClientRect();
                    return [box.x + box.width / 2, box.y + box.height / 2];
                }}
                return null;
            }})()"""
        )
        if place is None:
            raise BrowserError(f"nothing that is shown is selected by {selector}")
        at = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._command("Input.dispatchMouseEvent", type=kind, **at)

    def press(self, key: str) -> None:
        """Press a key, such as ``Escape``, where the focus is."""
        for kind in ("keyDown", "keyUp"):
            self._command("Input.dispatchKeyEvent", type=kind, key=key)

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

    def _start(self, path: str) -> None:
        told, telling = os.pipe()
        hearing, answering = os.pipe()
        self._pipes = [telling, hearing]
        # Ends that are neither 3 nor 4 can be put there one after the other.
        high = [_duplicate(end) for end in (told, answering)]
        os.close(told)
        os.close(answering)
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # it has none for root
        given = [f"--user-data-dir={self._profile}", *sandbox, *FLAGS]
        become = [sys.executable, "-I", "-S", "-c", BECOME, *map(str, high), path, *given]
        try:
            self._process = subprocess.Popen(
                become,
                pass_fds=high,
                start_new_session=True,
                env={**os.environ, "TMPDIR": self._profile},  # what it leaves behind goes with it
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        finally:
            for end in high:
                os.close(end)

    def _attach(self) -> None:
        target = self._command("Target.createTarget", url="about:blank")["targetId"]
        attached = self._command("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._command(f"{domain}.enable")

    def _command(self, method: str, **given: Any) -> dict[str, Any]:
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        answers: list[dict[str, Any]] = []
        self._send(json.dumps(message).encode() + b"\0")
        self._wait(lambda: bool(answers), f"an answer to {method}", answers)
        if "error" in answers[0]:
            raise BrowserError(f"{method}: {answers[0]['error'].get('message')}")
        result: dict[str, Any] = answers[0]["result"]
        return result

    def _send(self, message: bytes) -> None:
        try:
            while message:
                message = message[os.write(self._pipes[0], message) :]
        except BrokenPipeError as error:
            raise BrowserError("the browser has ended") from error

    def _wait(
        self,
        done: Callable[[], bool],
        what: str,
        answers: list[dict[str, Any]] | None = None,
    ) -> None:
        """Take in what the browser says until something is the case."""
        deadline = time.monotonic() + self._seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._pipes[1]], [], [], left)[0]:
                raise BrowserError(f"waited {self._seconds:g} s in vain for {what}")
            chunk = os.read(self._pipes[1], CHUNK)
            if not chunk:
                raise BrowserError(f"the browser ended while it was waited for {what}")
            *whole, self._received = (self._received + chunk).split(b"\0")
            for each in whole:
                self._take(json.loads(each), answers)

    def _take(self, message: dict[str, Any], answers: list[dict[str, Any]] | None) -> None:
        if message.get("id") == self._last and answers is not None:
            answers.append(message)
            return
        method, given = message.get("method", ""), message.get("params", {})
        self._events.append(method)
        if method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            said = (str(each.get("value", each.get("description"))) for each in given["args"])
            self.messages.append(f"{given['type']}: {' '.join(said)}")
        elif method == "Runtime.exceptionThrown":
            self.messages.append(f"exception: {_thrown(given['exceptionDetails'])}")
        elif method == "Log.entryAdded":
            self.messages.append(f"{given['entry']['level']}: {given['entry']['text']}")


def _thrown(details: dict[str, Any]) -> str:
    described = details.get("exception", {}).get("description")
    return str(described or details.get("text", ""))


def _duplicate(end: int) -> int:
    """The same pipe under a number from 10 on; UnavailableError where systems have none such."""
    try:
        import fcntl
    except ImportError as error:
        raise UnavailableError("driving a browser through pipes needs a POSIX system") from error
    return fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10)
