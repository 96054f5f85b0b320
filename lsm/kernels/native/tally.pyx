"""Tallies: what became of lookups at one level whose tables carry one policy's filters."""


cdef class Tally:
    """Counts lookups while they run; lsm.stats.Counters says what each count means."""

    cpdef count(self, state):
        """Count a lookup that read a block without a filter's say, and why it had none."""
        if state == "none":
            self.none += 1
        else:
            setattr(self, state, getattr(self, state) + 1)
