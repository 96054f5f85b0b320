"""The statistics of open databases for Prometheus and OpenTelemetry.

::

    import lsm.metrics

    lsm.metrics.prometheus(db)  # in the default registry
    lsm.metrics.opentelemetry(db, attributes={"lsm.database": "shop"})

Each needs a package, which the extra of its name brings. ``docs/metrics.md`` has all metrics.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lsm.db import DB
from lsm.metrics.watched import Registration

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter, MeterProvider
    from prometheus_client import CollectorRegistry

__all__ = ["Registration", "opentelemetry", "prometheus"]


def prometheus(
    db: DB,
    *,
    registry: CollectorRegistry | None = None,
    labels: Mapping[str, str] | None = None,
) -> Registration:
    """Have a registry tell the metrics of a database, from now until either is closed.

    Without a ``registry`` it is prometheus_client's own. ``labels`` stand on every sample, beside
    ``database``, which is the path unless they have it, too. Two databases of one registry need
    some label that tells them apart.
    """
    try:
        from lsm.metrics import prometheus_collector
    except ImportError as error:
        raise _without("prometheus", "prometheus_client", error) from error
    return prometheus_collector.register(db, registry, labels)


def opentelemetry(
    db: DB,
    *,
    meter: Meter | None = None,
    provider: MeterProvider | None = None,
    attributes: Mapping[str, str | bool | int | float] | None = None,
) -> Registration:
    """Have a meter observe the metrics of a database, from now until either is closed.

    The meter is the one given, or that of the name ``lsm`` of the ``provider``, or of the global
    one. ``attributes`` stand on every observation, beside ``lsm.database``, which is the path
    unless they have it, too. Two databases of one meter need some attribute that tells them apart.
    """
    try:
        from lsm.metrics import opentelemetry_instruments
    except ImportError as error:
        raise _without("opentelemetry", "opentelemetry-api", error) from error
    return opentelemetry_instruments.register(db, meter, provider, attributes)


def _without(extra: str, package: str, error: ImportError) -> ImportError:
    """The error of a package that is not there, or that cannot be imported."""
    return ImportError(
        f"lsm.metrics.{extra}() needs {package}, which cannot be imported here ({error}): install "
        f"lsm-filters with its extra [{extra}], as by: pip install 'lsm-filters[{extra}]'",
        name=error.name,
    )
