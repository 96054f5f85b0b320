"""The beginning of the report as a picture: its head and the first two charts.

The sentences of advice are left out: a picture is for what cannot be told in sentences.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.browser import Browser

WIDTH, HEIGHT = 1280, 900
MARGIN = 28
MOST_BYTES = 400_000
# The lower edge of the last element that is to be seen, the longest picture first.
ENDS = ("#speed", "#rates", "header")


def picture(report: Path, target: Path, *, width: int = WIDTH, dark: bool = False) -> None:
    """Write it; of fewer charts if the file would become larger than what a README bears."""
    with Browser() as browser:
        browser.set_viewport(width, HEIGHT, dark=dark)
        browser.open(report)
        browser.evaluate("document.querySelector('.advice')?.remove()")
        for selector in ENDS:
            bottom = browser.evaluate(
                f"document.querySelector('{selector}').getBoundingClientRect().bottom + scrollY"
            )
            browser.screenshot(target, clip=(0, 0, width, bottom + MARGIN))
            if target.stat().st_size <= MOST_BYTES:
                return
