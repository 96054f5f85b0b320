"""Running a refiltering: tables copied with other filters, and installed in the place of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lsm import table_copy
from lsm.disk.edit import Edit
from lsm.errors import CorruptionError, IOError, SyncError
from lsm.table_copy import NotCopiableError
from policies.errors import PluginError

if TYPE_CHECKING:
    from lsm.installing import Installer
    from lsm.kernels import TableFile
    from lsm.refiltering import RefilterPlan
    from lsm.table_factory import DeeperLevels, Output
    from lsm.version import PlacedTable


def run(
    installer: Installer,
    plan: RefilterPlan,
    numbers: Sequence[int],
    deeper: DeeperLevels,
    pause: Callable[[int], object],
) -> list[TableFile]:
    """Write a plan's tables anew, under these numbers, and install them; none if they stay.

    What cannot be copied stays as it is, and the request says why. An error of the storage ends
    the request, and nothing else; but for one of a sync, after which nothing is known.
    """
    request = plan.request
    oldest_first = sorted(plan.tables, key=lambda table: table.number)
    outputs = []
    try:
        for table, number in zip(oldest_first, numbers, strict=True):
            outputs.append(_copied(installer, plan, table, number, deeper, pause))
    except (NotCopiableError, CorruptionError, PluginError) as error:
        installer.discard_outputs()
        request.give_up(plan.tables, str(error))
        return []
    except SyncError:
        raise
    except IOError as error:
        installer.discard_outputs()
        request.error = error.with_traceback(None)
        return []
    edit = Edit(deleted=[(plan.level, table.number) for table in plan.tables])
    files = installer.add(edit, plan.level, outputs)
    installer.install(edit, files)
    request.finish(plan.tables)
    return files


def _copied(
    installer: Installer,
    plan: RefilterPlan,
    table: PlacedTable,
    number: int,
    deeper: DeeperLevels,
    pause: Callable[[int], object],
) -> Output:
    """A copy with the filter that is wanted; NotCopiableError where that comes to none."""
    wanted = plan.request.plan_for(installer.factory, table, deeper)
    output = table_copy.copy(installer.factory, table.file, number, wanted, pause)
    table_copy.check_bounds(output, table)
    if output.table.filter.state == "failed":
        raise NotCopiableError(
            f"{table.number:06}.ldb: no other filter can be built: {output.table.filter.reason}"
        )
    return output
