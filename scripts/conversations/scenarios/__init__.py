"""The scenarios, one module per subject."""

from . import (
    attachments,
    changes,
    failures,
    history,
    mcp,
    old,
    per_format,
    settings,
    terminal,
    tools,
)

MODULES = [per_format, attachments, changes, tools, terminal, mcp, history, old, settings, failures]


def all_scenarios(checkout):
    """Returns all scenarios in their order; `checkout` is the root of this repository."""
    scenarios = [scenario for module in MODULES for scenario in module.SCENARIOS]
    scenarios += old.read_real(checkout)
    names = [scenario.name for scenario in scenarios]
    if len(set(names)) < len(names):
        raise ValueError("two scenarios have one name")
    return scenarios
