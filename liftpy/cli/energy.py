"""The energy proxy as commands print it; imported when an option asks for it."""

from __future__ import annotations

from typing import Any

from liftpy.cli.screen import note, say
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.energy import with_energy
from liftpy.explore.choosing import Choice
from liftpy.explore.report.wording import in_energy
from liftpy.traffic.energy_costs import DEFAULT, EnergyCosts, energy_costs


def costs_named(name: str | None) -> EnergyCosts:
    """The costs that `--energy-costs` names, or the default ones."""
    return energy_costs(name or DEFAULT)


def with_proxies(found: Campaign, name: str | None) -> Campaign:
    """A campaign with the energy proxy of its candidates, by the named costs."""
    costs = costs_named(name)
    note(f"energy proxy: costs of {costs.name}; assumed: {', '.join(costs.assumed)}")
    return with_energy(found, costs)


def as_data(choice: Choice, costs: EnergyCosts | None) -> dict[str, Any]:
    """A choice as JSON data, with the energy proxy of each candidate if there are costs."""
    data = choice.to_json()
    if costs is not None:
        data |= choice.energy_proxy(costs=costs).to_json()
        data["others"] = [
            told | choice.energy_proxy(other, costs).to_json()
            for other, told in zip(choice.others, data["others"], strict=True)
        ]
    return data


def show_energy(choice: Choice, costs: EnergyCosts) -> None:
    """Prints the energy proxy of the chosen candidate with its parts."""
    proxy = choice.energy_proxy(costs=costs)
    say(
        f"energy proxy: {in_energy(proxy.total)}, by the costs of {costs.name}; no energy is "
        "measured"
    )
    for level, spent in proxy.levels.items():
        say(f"  {f'bytes from {level}':20} {in_energy(spent):>10}")
    say(f"  {'operations':20} {in_energy(sum(proxy.operations.values())):>10}")
