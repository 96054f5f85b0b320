"""Every error a filter raises on purpose, beside TypeError and ValueError for misuse."""


class FilterError(Exception):
    """Base of all errors about filters, in this package and in ``policies``."""


class CorruptFilterError(FilterError):
    """These bytes are not a filter of the family they were given to, or no longer one."""


class UnsupportedVersionError(FilterError):
    """The bytes are intact and were written by a newer version of this format."""


class CapacityError(FilterError):
    """The filter has no room for this key; nothing was changed."""


class GeometryMismatchError(FilterError, ValueError):
    """Two filters cannot be united because the named field differs."""


class KernelUnavailableError(FilterError, ImportError):
    """The kernel that was asked for cannot run here; the message says why."""
