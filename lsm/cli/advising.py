"""Commands for choosing filters: advise, what-if."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

import lsm
import policies
from filters import advice
from filters.families import every
from lsm import options as engine_options
from lsm import what_if as trials
from lsm.cli import options, output
from lsm.cli.entries import reading
from lsm.cli.options import Command
from lsm.cli.progress import Meter
from lsm.options import LEVELS
from lsm.tree_advice import TreeAdvice
from lsm.what_if import Candidate, Outcome
from policies import LevelPolicies
from policies.rule import BudgetRule


def _asking(command: Command) -> Command:
    """``--read-cost``, ``--absent-share`` and ``--family``: what a budget is told."""
    for option in (
        click.option("--family", "families", multiple=True, help="Choose among these policies."),
        click.option(
            "--absent-share",
            type=click.FloatRange(0, 1),
            help="How many of all lookups are for keys that are not there.",
        ),
        click.option("--read-cost", metavar="TIME", help='What a block costs, such as "100 us".'),
    ):
        command = option(command)
    return command


@click.command(short_help="Show which filters would be best, and what they would save.")
@options.path
@click.option("--budget", help='What all filters may take, such as "10 bits/key".')
@_asking
@click.option("--toml", is_flag=True, help="Print the configuration that places filters so.")
@options.as_json
def advise(
    path: str,
    budget: str | None,
    read_cost: str | None,
    absent_share: float | None,
    families: tuple[str, ...],
    toml: bool,
    as_json: bool,
) -> None:
    """Show what the filters of all levels are, what would be best, and what refiltering costs."""
    with reading(path) as db:
        told = db.advise(
            budget=budget,
            read_cost=read_cost,
            absent_share=absent_share,
            families=families or None,
        )
    if as_json:
        output.document(told.as_dict())
    elif toml:
        output.line(told.to_toml().rstrip())
    else:
        _show_advice(told)


def _show_advice(told: TreeAdvice) -> None:
    for text in str(told).splitlines():
        output.line(text)


@click.command(
    name="what-if", short_help="Build other filters of a database's keys, and compare them."
)
@options.path
@click.option(
    "--policy",
    "named",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="This policy on all levels, such as cuckoo:fpr=0.001.",
)
@click.option("--budget", "budgets", multiple=True, help='A budget, such as "10 bits/key".')
@click.option(
    "--config",
    "configs",
    multiple=True,
    type=click.Path(dir_okay=False),
    help="The filters of a configuration.",
)
@_asking
@options.as_json
def what_if(
    path: str,
    named: tuple[str, ...],
    budgets: tuple[str, ...],
    configs: tuple[str, ...],
    read_cost: str | None,
    absent_share: float | None,
    families: tuple[str, ...],
    as_json: bool,
) -> None:
    """Build other filters of a database's own keys, and show what they would cost and save.

    Nothing is kept of them. Without any of --policy, --budget and --config that is every family at
    its default, and a budget of what the filters take now. Each may be given more than once.
    """
    asking = {"read_cost": read_cost, "absent_share": absent_share, "families": families or None}
    with reading(path) as db:
        rule = db.advise(**asking).rule  # type: ignore[arg-type]
        told = {key: value for key, value in rule.entries().items() if key != "heat"}
        candidates = [_of_policy(each) for each in named]
        candidates += [Candidate(each, engine_options.load(each).filters) for each in configs]
        candidates += [_of_budget({**told, "budget": each}) for each in budgets]
        if not candidates:
            candidates = [*_usual(), _of_budget(told)]
        outcomes = _compared(db, candidates, rule)
    if as_json:
        output.document([each.as_dict() for each in outcomes])
        return
    _show_outcomes(outcomes)
    output.line(f"a block costs {rule.entries()['read_cost']}; times are of one lookup")


def _compared(db: lsm.DB, candidates: Sequence[Candidate], rule: BudgetRule) -> list[Outcome]:
    with Meter("building filters") as meter:
        return trials.compare(
            db._store, candidates, rule, lambda it: meter.reach(it.bytes, it.total_bytes)
        )


def _show_outcomes(outcomes: Iterable[Outcome]) -> None:
    output.table(
        ("filters", "bits/key", "size", "reads in vain", "us a lookup", "ns/key built"),
        [
            (
                each.name + (f", {each.failed} failed" if each.failed else ""),
                output.number(each.bits_per_key),
                output.size(each.bits / 8),
                f"{each.reads:.3g}",
                f"{each.time_ns / 1000:.3g}",
                _built(each),
            )
            for each in outcomes
        ],
        left=("filters",),
    )


def _built(outcome: Outcome) -> str:
    if outcome.build_seconds is None or not outcome.keys:
        return "-"
    return f"{1e9 * outcome.build_seconds / outcome.keys:.0f}"


def _usual() -> list[Candidate]:
    """Every family that suits tables, at its default."""
    names = [family.name for family in every().values() if family.policy and family.in_tables]
    return [_of_policy(name) for name in names]


def _of_budget(entries: dict[str, Any]) -> Candidate:
    rule = BudgetRule.of(entries)
    return Candidate(f"a budget of {rule.budget}", LevelPolicies.of_rule(rule, LEVELS))


def _of_policy(written: str) -> Candidate:
    """The candidate that ``NAME:KEY=VALUE,...`` names."""
    name, _, rest = written.partition(":")
    params = dict(_param(written, each) for each in rest.split(",") if each)
    try:
        policy = advice.silently(policies.create, name, **params)
    except TypeError as error:
        raise click.BadParameter(f"{written}: {error}", param_hint="'--policy'") from error
    told = f"{name} {output.params(params)}".rstrip()
    return Candidate(told, LevelPolicies.uniform(policy, LEVELS))


def _param(written: str, entry: str) -> tuple[str, Any]:
    key, equals, value = entry.partition("=")
    if not equals:
        raise click.BadParameter(
            f"{written}: {entry!r} is no KEY=VALUE; write cuckoo:fpr=0.001", param_hint="'--policy'"
        )
    kinds: tuple[Callable[[str], Any], ...] = (int, float)
    for kind in kinds:
        try:
            return key.strip(), kind(value)
        except ValueError:
            continue
    return key.strip(), {"true": True, "false": False}.get(value, value)


COMMANDS = (advise, what_if)
