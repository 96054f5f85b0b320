"""Metrics for OpenTelemetry: one set of observable instruments for all databases of a meter."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

import lsm
from lsm.db import DB
from lsm.metrics.catalogue import COUNTER, DATABASE, LABELS, METRICS, Metric, attribute
from lsm.metrics.watched import REGISTERING, Registration, Watchlist, watched

_OWN = frozenset(map(attribute, LABELS))


class Instruments:
    """The instruments of one meter, which observe all databases that are registered there.

    One set for all of them, since a meter takes no callback for an instrument that it has already,
    and since it lets no callback go.
    """

    def __init__(self) -> None:
        self.watchlist = Watchlist()

    def create(self, meter: Meter) -> None:
        """Create them."""
        for metric in METRICS:
            about = metric.name, [partial(self._observe, metric)], metric.unit, metric.help
            if metric.kind == COUNTER:
                meter.create_observable_counter(*about)
            else:
                meter.create_observable_gauge(*about)

    def _observe(self, metric: Metric, options: CallbackOptions) -> Iterable[Observation]:
        for each in self.watchlist.all():
            stats = each.stats_for(metric)
            if stats is None:
                continue
            for values, value in each.samples(metric, stats).items():
                attributes = each.labels | dict(zip(metric.attributes, values, strict=True))
                yield Observation(value, attributes)


class _Global:
    """Stands for the global provider, which is another object once somebody has set it."""


_GLOBAL = _Global()
_INSTRUMENTS: weakref.WeakKeyDictionary[object, Instruments] = weakref.WeakKeyDictionary()


def register(
    db: DB,
    meter: Meter | None,
    provider: MeterProvider | None,
    attributes: Mapping[str, Any] | None,
) -> Registration:
    """Have a meter observe the metrics of a database, from now until either is closed."""
    owner = _owner(meter, provider)
    added = watched(db, "attributes", attributes, attribute(DATABASE), _check)
    with REGISTERING:
        instruments = _INSTRUMENTS.get(owner)
        if instruments is None:
            instruments = Instruments()
            instruments.create(_meter_of(provider) if meter is None else meter)
            _INSTRUMENTS[owner] = instruments
        instruments.watchlist.add(added, "meter")
    return Registration(partial(instruments.watchlist.remove, added))


def _owner(meter: Meter | None, provider: MeterProvider | None) -> object:
    """What has the instruments: a meter or a provider."""
    for given, kind, name in ((meter, Meter, "meter"), (provider, MeterProvider, "provider")):
        if given is not None and not isinstance(given, kind):
            raise TypeError(
                f"{name} must be an opentelemetry.metrics.{kind.__name__}, not "
                f"{type(given).__name__}"
            )
    if meter is not None:
        if provider is not None:
            raise ValueError("give either a meter or a provider, which then makes the meter")
        return meter
    if provider is None or provider is metrics.get_meter_provider():
        return _GLOBAL
    return provider


def _meter_of(provider: MeterProvider | None) -> Meter:
    provider = metrics.get_meter_provider() if provider is None else provider
    return provider.get_meter("lsm", lsm.__version__)


def _check(name: Any, value: Any) -> None:
    """Raise unless this can be an attribute of a database."""
    if not isinstance(name, str):
        raise TypeError(f"attributes must have str for names, not {type(name).__name__}: {name!r}")
    if not isinstance(value, str | bool | int | float):
        raise TypeError(
            f"the attribute {name!r} must be a str, bool, int or float, not {type(value).__name__}"
        )
    if not name or name in _OWN:
        raise ValueError(
            f"{name!r} cannot be an attribute of a database: a name is not empty, and none that "
            f"metrics have already: {', '.join(sorted(_OWN))}"
        )
