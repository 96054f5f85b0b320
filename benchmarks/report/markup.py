"""HTML and SVG as text in which nothing is markup that was not made here.

Whatever comes from a record goes through :func:`escape`: what :func:`tag` is given as a string is
text, and only what is a :class:`Markup` stands as it is.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

NO_CONTENT = frozenset(("meta", "link", "br", "line", "path", "rect", "circle"))


class Markup(str):
    """Text that is HTML, or SVG."""

    __slots__ = ()


Child = str | None | Iterable["Child"]


def escape(text: str) -> Markup:
    """The markup that shows this text, also within an attribute."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element. ``class_`` is the attribute class, ``data_row`` is data-row; None is left out."""
    given = "".join(
        f' {each.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"'
        for each, value in attributes.items()
        if value is not None
    )
    if name in NO_CONTENT and not children:
        return Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """One after the other, nested ones too; strings as text, None as nothing."""
    return Markup("".join(_markup(child) for child in children))


def _markup(child: Child) -> str:
    if child is None:
        return ""
    return escape(child) if isinstance(child, str) else join(child)


def _shown(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.1f}".removesuffix(".0")
