"""The energy proxy of stored candidates, which are derived again: it is computed, never stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from liftpy.deadline import check
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.replay import named_candidate
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.outcome import TIMED
from liftpy.language.entry import entry
from liftpy.language.text.program import parse
from liftpy.traffic.energy import energy_proxy
from liftpy.traffic.energy_costs import EnergyCosts, energy_costs
from liftpy.traffic.machine import hardware_of


@entry("lp.with_energy")
def with_energy(campaign: Campaign, costs: EnergyCosts | None = None) -> Campaign:
    """A campaign with the energy proxy of each measured candidate, on the device of each.

    A proxy is in pJ, by a table of costs; the default is the one that comes with liftpy
    (docs/choosing.md). It takes as long as compiling the candidates: 10 to 300 ms for each. Raises
    StoreRefused if this liftpy does not derive one of them.

    >>> import liftpy as lp
    >>> program = lp.workload("matmul/8x8x8")
    >>> found = lp.explore(program, 2, device="profile:mali-g72", modelled=True)
    >>> front = lp.with_energy(found).pareto("energy")
    >>> front[0].energy > 0
    True
    """
    table = energy_costs() if costs is None else costs
    return replace(campaign, rows=tuple(rows(campaign, table)), energy_costs=table.name)


def rows(campaign: Campaign, costs: EnergyCosts) -> Iterator[Row]:
    """The rows of a campaign, the measured ones with their energy proxy."""
    program = parse(campaign.identity.text)
    hardware = {d.fingerprint: (d, hardware_of(d)) for d in campaign.devices}
    only = next(iter(hardware.values())) if len(hardware) == 1 else None
    for row in campaign.rows:
        on = only or hardware.get(row.device or "")
        if row.outcome not in TIMED or on is None:
            yield row
            continue
        check()
        where = f"candidate {row.id} of {campaign.path}"
        candidate = named_candidate(program, row.skeleton, row.assignment, where)
        lowered = candidate.skeleton.at(candidate.point)
        yield replace(row, energy=energy_proxy(lowered, *on, costs).total)
