"""Waiting for a change: whoever took a ticket before it passes, whatever comes in between."""

from __future__ import annotations

import threading

from lsm.turnstile import Turnstile
from tests.effort import by_effort
from tests.lsm.crew import Crew
from tests.lsm.interrupting import interrupted_at, points
from tests.lsm.patience import patient


@patient
def test_who_has_a_ticket_passes_with_the_next_turn() -> None:
    turnstile, changed = Turnstile(), threading.Event()

    def wait() -> None:
        while True:
            ticket = turnstile.ticket()
            if changed.is_set():
                return
            ticket.wait()

    with Crew() as crew:
        for _ in range(4):
            crew.start(wait)
        changed.set()
        turnstile.notify_all()


def test_a_ticket_is_good_for_a_turn_before_it_is_used() -> None:
    turnstile = Turnstile()
    ticket = turnstile.ticket()
    turnstile.notify_all()
    ticket.wait(0)
    assert not turnstile._tickets


def test_those_who_did_not_have_to_wait_leave_nothing_behind() -> None:
    turnstile = Turnstile()
    for _ in range(5000):
        turnstile.ticket()
    assert len(turnstile._tickets) <= 1000


@patient
def test_an_interrupted_turn_holds_up_nobody_for_good() -> None:
    for number in range(0, points(_turned), by_effort(17, 5, 1)):
        turnstile = Turnstile()
        tickets = [turnstile.ticket() for _ in range(3)]
        interrupted_at(number, turnstile.notify_all)
        for ticket in tickets:
            ticket.wait()  # which ends by itself, if need be


def _turned() -> None:
    turnstile = Turnstile()
    for _ in range(3):
        turnstile.ticket()
    turnstile.notify_all()
