"""What is written of metrics: their page, its programs and rule, and the board for Grafana."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lsm.metrics.catalogue import DATABASE, METRICS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
BOARD: dict[str, Any] = json.loads((DOCS / "grafana.json").read_text(encoding="utf-8"))
BY_NAME = {metric.prometheus_name: metric for metric in METRICS}
SELECTED = re.compile(r"(lsm_[a-z_]+)(?:\{([^}]*)\})?")


def expressions() -> list[str]:
    """What the panels of the board ask for."""
    return [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("number", [0, 1])
def test_programs_run(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(("prometheus_client", "opentelemetry.metrics")[number])
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(programs) == 2
    exec(compile(programs[number], "docs/metrics.md", "exec"), {})


def test_the_page_names_metrics_that_there_are() -> None:
    for name in set(re.findall(r"\blsm_[a-z_]+[a-z]\b", PAGE)) - {"lsm_database", "lsm_level"}:
        assert name in BY_NAME, name
    assert set(BY_NAME) <= set(re.findall(r"`(lsm_[a-z_]+)`", PAGE))


def test_rules_and_board_ask_for_what_there_is() -> None:
    [rules] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    asked = [*expressions(), *re.findall(r"expr: (.*)", rules), rules]
    assert "lsm_filter_false_positives_total" in "".join(asked)
    for expression in asked:
        for name, labels in SELECTED.findall(expression):
            known = {*BY_NAME[name].labels, DATABASE}
            assert set(re.findall(r"(\w+)=~?\"", labels)) <= known, expression
        for inner in re.findall(r"by \(([^)]*)\) \((?:\w+ ?\()?(lsm_\w+)", expression):
            labels, name = inner
            assert set(labels.split(", ")) <= {*BY_NAME[name].labels, DATABASE}, expression


def test_counters_are_asked_for_by_their_growth() -> None:
    """But for those that are shown as they are, since any is too many."""
    for expression in expressions():
        for before, name in re.findall(r"(\w+\()?(lsm_[a-z_]+)", expression):
            is_counter = BY_NAME[name].kind == "counter"
            if name != "lsm_filter_build_failures_total":
                assert (before in ("rate(", "increase(")) == is_counter, expression


def test_expressions_are_closed() -> None:
    for expression in expressions():
        for one, other in ("()", "{}", "[]"):
            assert expression.count(one) == expression.count(other), expression
        assert '{database=~"$database"' in expression


def test_the_board_is_one_that_can_be_imported() -> None:
    panels = BOARD["panels"]
    identities = [panel["id"] for panel in panels]
    assert len(set(identities)) == len(identities)
    assert {"uid", "title", "schemaVersion", "time", "templating"} <= set(BOARD)
    titles = [panel["title"] for panel in panels]
    assert len(set(titles)) == len(titles)
    variables = {each["name"] for each in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z_]+)\}?", json.dumps(panels)))
    assert used <= variables | {"__rate_interval"}
    for panel in panels:
        assert panel["description"].endswith(".")
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references) > 0
        for target in panel["targets"]:
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            [name, *_] = re.findall(r"lsm_[a-z_]+", target["expr"])
            assert shown <= {*BY_NAME[name].labels, DATABASE}


def test_panels_do_not_cover_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = set(itertools.product(columns, range(place["y"], place["y"] + place["h"])))
        assert columns.stop <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_the_board_shows_what_it_is_for() -> None:
    said = " ".join(panel["title"].lower() for panel in BOARD["panels"])
    for what in (
        "absent lookups skipped",
        "measured and expected",
        "in vain",
        "filter memory",
        "cache hit rate",
        "stalls",
        "compaction throughput",
        "refilters",
    ):
        assert what in said
