"""Waiting for a change of state that another thread makes."""

from __future__ import annotations

import threading
from collections import deque

# Whoever waits looks again so often, even if nobody says that something has changed: an
# interruption may have come before that was said.
_PATIENCE_SECONDS = 0.5
# So many tickets are out before those who have one are let pass to look again.
_MOST_TICKETS = 1000


class Ticket:
    """One thread's place at a turnstile; good for one turn."""

    __slots__ = ("_closed",)

    def __init__(self) -> None:
        self._closed = threading.Lock()
        self._closed.acquire()

    def wait(self, seconds: float | None = None) -> None:
        """Return when the turnstile has turned since the ticket was taken, or a little later."""
        self._closed.acquire(timeout=_PATIENCE_SECONDS if seconds is None else seconds)

    def open(self) -> None:
        """Let who holds it pass."""
        self._closed.release()


class Turnstile:
    """Where threads wait until something has changed: take a ticket, look, and wait if need be.

    No lock is held by anybody here, so that who is interrupted leaves none behind, and a signal
    handler can do the same in the middle of it. That is why it is no ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._tickets: deque[Ticket] = deque()

    def ticket(self) -> Ticket:
        """A ticket for the next turn."""
        if len(self._tickets) >= _MOST_TICKETS:  # of those who did not have to wait
            self.turn()
        ticket = Ticket()
        self._tickets.append(ticket)
        return ticket

    def turn(self) -> None:
        """Let everybody pass who has a ticket."""
        for _ in range(len(self._tickets)):  # those who come back meanwhile wait for the next turn
            try:
                ticket = self._tickets.popleft()
            except IndexError:  # another thread has turned it, too
                return
            ticket.open()
