"""Metrics for Prometheus: one collector for all databases of a registry."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.samples import Sample

from lsm.db import DB
from lsm.metrics.catalogue import DATABASE, LABELS, METRICS, Metric
from lsm.metrics.watched import REGISTERING, Registration, Watchlist, watched

_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")


class Collector:
    """What a registry asks for the metrics of all databases that are registered there.

    One for all of them, since a metric may be described only once in what is scraped.
    """

    def __init__(self) -> None:
        self.watchlist = Watchlist()

    def describe(self) -> list[Family]:
        """The metrics without samples: names that no other collector of the registry may use."""
        return [_family(metric) for metric in METRICS]

    def collect(self) -> Iterator[Family]:
        """The metrics of all databases that are open, of each as of one moment."""
        read = [(each, each.stats()) for each in self.watchlist.all()]
        for metric in METRICS:
            family = _family(metric)
            for each, stats in read:
                if stats is None:
                    continue
                for values, value in each.samples(metric, stats).items():
                    labels = each.labels | dict(zip(metric.labels, values, strict=True))
                    family.samples.append(Sample(metric.prometheus_name, labels, value))
            if family.samples:
                yield family


def _family(metric: Metric) -> Family:
    name = metric.prometheus_name.removesuffix("_total")  # the exposition appends it to counters
    return Family(name, metric.help, metric.kind, metric.prometheus_unit)


_COLLECTORS: weakref.WeakKeyDictionary[CollectorRegistry, Collector] = weakref.WeakKeyDictionary()


def register(
    db: DB, registry: CollectorRegistry | None, labels: Mapping[str, str] | None
) -> Registration:
    """Have a registry tell the metrics of a database, from now until either is closed."""
    registry = REGISTRY if registry is None else registry
    if not isinstance(registry, CollectorRegistry):
        raise TypeError(
            f"registry must be a prometheus_client.CollectorRegistry, not {type(registry).__name__}"
        )
    added = watched(db, "labels", labels, DATABASE, _check)
    with REGISTERING:
        collector = _COLLECTORS.get(registry)
        if collector is None:
            collector = Collector()
            registry.register(collector)
            _COLLECTORS[registry] = collector
        collector.watchlist.add(added, "registry")

    def end() -> None:
        collector.watchlist.remove(added)
        if not collector.watchlist and _COLLECTORS.get(registry) is collector:
            del _COLLECTORS[registry]
            registry.unregister(collector)

    return Registration(end)


def _check(name: Any, value: Any) -> None:
    """Raise unless this can be a label of a database."""
    for what in (name, value):
        if not isinstance(what, str):
            raise TypeError(
                f"labels must have str for names and values, not {type(what).__name__}: {what!r}"
            )
    if not _LABEL.fullmatch(name) or name in LABELS:
        raise ValueError(
            f"{name!r} cannot be a label of a database: a name has letters, digits and "
            "underscores, begins with no digit and not with two underscores, and is none that "
            f"metrics have already: {', '.join(sorted(LABELS))}"
        )
