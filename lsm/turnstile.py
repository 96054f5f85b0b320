"""Waiting for a change of state that another thread makes: an eventcount."""

from __future__ import annotations

import threading
from collections import deque

# A waiting thread looks again so often, even if it was not notified: an interruption may have come
# between the change and its notification.
_PATIENCE_SECONDS = 0.5
# So many tickets are out before all of their holders are notified, to look again.
_MOST_TICKETS = 1000


class Ticket:
    """One thread's registration with a turnstile, for one notification."""

    __slots__ = ("_closed",)

    def __init__(self) -> None:
        self._closed = threading.Lock()
        self._closed.acquire()

    def wait(self, seconds: float | None = None) -> None:
        """Return when there was a notification since the ticket was taken, or after some time."""
        self._closed.acquire(timeout=_PATIENCE_SECONDS if seconds is None else seconds)

    def open(self) -> None:
        """Wake the thread that waits with this ticket, or have it not wait at all."""
        self._closed.release()


class Turnstile:
    """Where threads wait for a change: take a ticket, look at the state, and wait if need be.

    No lock is held here, so that an interrupted thread leaves none behind, and a signal handler can
    do the same in the middle of it. That is why it is no ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._tickets: deque[Ticket] = deque()

    def ticket(self) -> Ticket:
        """A ticket for the next notification."""
        if len(self._tickets) >= _MOST_TICKETS:  # of those who did not have to wait
            self.notify_all()
        ticket = Ticket()
        self._tickets.append(ticket)
        return ticket

    def notify_all(self) -> None:
        """Wake every thread that has a ticket."""
        for _ in range(len(self._tickets)):  # tickets that are taken meanwhile are for the next one
            try:
                ticket = self._tickets.popleft()
            except IndexError:  # another thread notifies, too
                return
            ticket.open()
