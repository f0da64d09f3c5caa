"""The campaigns by name. Each module has one function, ``attack(case)``, which raises where the library is wrong."""

from attack.campaigns import (
    bad_input,
    bad_requests,
    batch_axes,
    budgets,
    classical,
    damaged_files,
    damaged_runs,
    decisions,
    few_classes,
    guard_search,
    hartley,
    hull,
    intervals,
    kills,
    layouts,
    logits,
    many_classes,
    names,
    near_ties,
    pages_elsewhere,
    precisions,
    saved_files,
    stale_batches,
    summaries,
    thousands,
    two_members,
    two_writers,
)
from attack.case import Campaign

MODULES = (
    thousands, intervals, few_classes, many_classes, near_ties, budgets, two_members, hartley, decisions, classical, hull,
    logits, layouts, batch_axes, summaries, precisions, guard_search, bad_input, bad_requests, pages_elsewhere,
    damaged_files, saved_files, names, damaged_runs, stale_batches, kills, two_writers,
)  # fmt: skip
CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (Campaign(module.__name__.rpartition(".")[2], module.attack) for module in MODULES)
}
