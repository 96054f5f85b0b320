"""What a placement comes to, level by level: as text, as a dict, as a configuration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from policies.cost_models import Option
from policies.sections import Section, toml_key


@attrs.frozen
class AdvisedRun:
    """One run of a level: its keys, its filter, and what a lookup reads of it in vain."""

    level: int
    keys: int
    option: Option
    reads: float

    @property
    def text(self) -> str:
        """The policy and its parameters as somebody would say them."""
        return " ".join(
            [
                self.option.policy,
                *(f"{name}={_short(value)}" for name, value in self.option.params.items()),
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "level": self.level,
            "keys": self.keys,
            "policy": self.option.policy,
            "params": dict(self.option.params),
            "bits_per_key": self.option.bits_per_key,
            "expected_fpr": self.option.fpr,
            "reads": self.reads,
        }


@attrs.frozen
class Advice:
    """Which filters to put where, and what a lookup costs with them.

    ``bits`` are those of all filters as stored, ``budget`` what they could take; ``reads`` are the
    blocks that a lookup reads in vain, ``floor`` the fewest that so many bits allow any filter, and
    ``time_ns`` what asking filters and reading these blocks takes.
    """

    runs: Sequence[AdvisedRun]
    budget: float
    bits: float
    reads: float
    floor: float
    time_ns: float

    @property
    def bits_per_key(self) -> float:
        """What the filters take for each key, of all."""
        return self.bits / max(1, sum(run.keys for run in self.runs))

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON has it."""
        told = {
            field.name: getattr(self, field.name)
            for field in attrs.fields(type(self))
            if field.name != "runs"
        }
        return {"runs": [run.as_dict() for run in self.runs], **told}

    def to_toml(self) -> str:
        """A configuration that gives each level its filter, and the levels below the last one's.

        Of level 0 that of its largest run: all of its tables have one policy.
        """
        chosen: dict[int, AdvisedRun] = {}
        for run in self.runs:
            if run.level not in chosen or run.keys > chosen[run.level].keys:
                chosen[run.level] = run
        if not chosen:
            return Section("", "filters", {}).to_toml()
        last = chosen[max(chosen)].option
        sections = [Section("", "filters", {"policy": last.policy, **last.params})]
        for level, run in sorted(chosen.items()):
            if run.option != last:
                entries = {"policy": run.option.policy, **run.option.params}
                sections.append(Section("", f"filters.level.{toml_key(str(level))}", entries))
        return "\n".join(section.to_toml() for section in sections)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{'level':>5} {'keys':>13} {'bits/key':>8} {'pass':>10} {'reads':>9}  policy"
        for run in self.runs:
            option = run.option
            yield (
                f"{run.level:>5} {run.keys:>13,} {option.bits_per_key:>8.2f} "
                f"{100 * option.fpr:>8.3g} % {run.reads:>9.2g}  {run.text}"
            )
        yield f"{self.bits_per_key:.2f} bits/key, {self.bits / 8 / 2**20:.1f} MiB of filters"
        over = f", {self.reads / self.floor:.2f} times the fewest possible" if self.floor else ""
        yield f"a lookup reads {self.reads:.3g} blocks in vain{over}"
        yield f"and takes {self.time_ns / 1000:.3g} us for that and to ask the filters"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
