"""Every number of the hand-written findings is that of the result files.

Each function below says one part of the page again, with numbers from the files; what none of them says may hold no number.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, product
from pathlib import Path
from statistics import fmean, median

import pytest
from scipy.stats import spearmanr

from credalens.core.hartley import EXACT_CLASSES
from credalens_paper.experiments.cell_keys import PREPARATIONS, display_name
from credalens_paper.experiments.paper_entries import BAYESIAN, C10, C100, OOD, SIZES, WRAPPED
from credalens_paper.pages.claims import CLAIMS, Tally, compared_lines, ends, gaps, means_of, numbers_of, verdict
from credalens_paper.pages.comparisons import (
    AVERAGE,
    CREDAL,
    DATA,
    DISTANCES,
    EITHER,
    PLACES,
    better_prediction,
    by_data,
    by_network,
    catalogue,
    compared_in,
    comparisons,
    ranking,
)
from credalens_paper.results.records import ExactnessResult, read_repeated, read_results
from reproduction.tests.standard_error import standard_error

RESULTS = Path(__file__).parents[2] / "results"
PAGE = " ".join((RESULTS.parent / "docs" / "findings.md").read_text().replace("\\\n", "\n").split())
FOLDERS = [RESULTS / name for name in ("fast", "scratch", "text", "fast-resnet50-128")]
NAMES = re.compile(r"\]\([^)]*\)|`[^`]*`|CIFAR-100?[NH]?|ResNet-(18|50)|VGG16|B2|Lite0|CLINC150|(?<= )\d+(?=\. \*\*)")
BOTH = ("credal", "classical")
RELATIVES = {
    "EU": "credal EU beats mutual information",
    "GH": "the generalized Hartley measure beats mutual information",
    "TU": "credal TU beats classical TU",
}


@pytest.fixture(scope="module")
def results():
    return [*read_results(*FOLDERS), *read_repeated(*FOLDERS)]


def listed(names):
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def differences(results, label, first, second, on, **shared):
    """Numbers of a label less others of it, as a tally of ours."""
    pair = (numbers_of(results, label, **shared, **keys) for keys in (first, second))
    found = gaps(*pair, on=on)
    return Tally(found[0].metric if found else "AUROC", tuple(gap.ours for gap in found if gap.ours is not None))


def whole(tallies):
    """Several tallies of AUROCs as one."""
    return Tally("AUROC", tuple(chain.from_iterable(tally.differences for tally in tallies)))


def detection(results, *labels, **keys):
    """Credal less averaged AUROC by each measure, in the words of the page."""
    texts = []
    for measure, words in RELATIVES.items():
        credal = {"variant": "credal", "measure": measure}
        averaged = {"variant": "classical", "measure": "EU" if measure == "GH" else measure}
        on = ("backbone", "id_set", "ood_set")
        found = [differences(results, label, credal, averaged, on, metric="AUROC", **keys) for label in labels]
        texts.append(f"{words} in {whole(found).text}")
    return "; ".join(texts)


def which_score(results):
    cells = catalogue(results)
    overall = ranking(cells)
    assert overall.best == "total"
    second = list(overall.ranks)[1]
    yield (
        f"Of {len(overall.ranks)} scores it has the best mean rank over {len(cells)} pairs of network and unknown data: "
        f"{overall.ranks['total']:.1f}; `{second}` has {overall.ranks[second]:.1f}, `epistemic` "
        f"{overall.ranks['epistemic']:.1f}."
    )
    leader = max(overall.ranks, key=lambda name: overall.less(name, "total"))
    close = [name for name in overall.ranks if overall.less(leader, name) <= 0.5]
    behind = max(overall.less(leader, name) for name in close)
    yield f"By mean AUROC {listed(f'`{name}`' for name in close)} are within {behind:.2f} points: any of these will do."
    yield f"Best by data: {'; '.join(best_by_data(cells, *item) for item in DATA.items())}."


def best_by_data(cells, words, holds):
    found = ranking(cells, holds)
    less = found.less("total", found.best)
    if found.best == "total":
        return f"{words} `total`"
    distance = "within 0.1 points of AUROC of it" if abs(less) < 0.1 else f"{-less:.2f} points of AUROC behind it"
    return f"{words} `{found.best}` (`total` is {distance})"


def near_and_far(results):
    cells = catalogue(results)
    near, objects, pictures = (ranking(cells, holds) for holds in DISTANCES.values())
    assert {len(found.cells) for found in (near, objects, pictures)} == {10}
    yield "By mean rank on 10 networks."
    assert [found.best for found in (near, objects, pictures)] == ["entropy", "total", "mean_total"]
    assert abs(near.less("total", "entropy")) < 0.1
    yield "`total` is within 0.1 points of AUROC of `entropy`."
    less = pictures.less("mean_total", "total")
    yield f"For far pictures of another kind (SVHN) `total` is {less:.2f} points of AUROC behind `mean_total`."
    near = detection(results, "NearOOD", "FineTuned", ood_set=(C10, C100))
    yield f"Near unknowns (CIFAR-10 against CIFAR-100, or back), AUROC: {near}."


def scores_of_the_paper(results):
    models = {"method": WRAPPED, "metric": "AUROC", "ood_set": OOD}
    credal = numbers_of(results, "OODMain", variant="credal", measure="EU", **models)
    rivals = {
        "mutual information": ("OODMain", "classical", "EU"),
        "classical TU": ("OODMainTU", "classical", "TU"),
        "credal TU": ("OODMainTU", "credal", "TU"),
    }
    for words, (label, variant, measure) in rivals.items():
        rival = numbers_of(results, label, variant=variant, measure=measure, **models)
        found = gaps(rival, credal, on=("backbone", "method", "ood_set"))
        ours, paper = (sum(getattr(gap, source) > 0 for gap in found) for source in ("ours", "paper"))
        rows = f"of {len(found)}"
        yield f"{words} beats credal EU in {ours} {rows} rows (in the paper's numbers in {paper} {rows})"


def epistemic(results):
    networks, hartley = by_network(results, "EU"), by_network(results, "GH")
    lost = [name for name, tally in networks.items() if tally.pick("", "averaged", "") == "averaged"]
    every = whole(networks.values())
    assert every.pick("credal", "averaged", "either") == "either"  # "measure both"
    by_data = {}
    for name in lost:
        kind, _, data = name.partition(" on ")
        by_data.setdefault(data, []).append(kind)
    *most, last = (f"{listed(kinds)} on {data}" for data, kinds in by_data.items())
    yield (
        f"The credal one finds unknown inputs better in {every.share}, but loses for {len(lost)} of {len(networks)} kinds of "
        f"network: {', '.join(most)}, and {last}."
    )
    there = whole(hartley[name] for name in lost if name in hartley)
    assert there.pick("beats", "loses", "") == "beats"
    missing = listed(name for name in lost if name not in hartley)
    yield f"(`hartley`, slow above {EXACT_CLASSES} classes)"
    yield f"beats mutual information ({there.share}; not measured for {missing})."
    gains = {pair: cell["total"] - cell["epistemic"] for pair, cell in catalogue(results).items()}
    better = Tally("AUROC", tuple(gains.values()))
    (pair,) = (pair for pair, gain in gains.items() if gain < 0)
    assert (pair.backbone, pair.id_set, pair.ood_set) == ("efficientnet_lite0", "cifar100", "svhn")
    yield f"`total` ranks unknown inputs better in {better.share} (not for EfficientNet-Lite0 on CIFAR-100 against SVHN)."


def large_networks(results):
    (preset,) = (result.provenance.preset for result in results if result.label == "FineTuned")
    pixels = preset.pixels("efficientnet_lite0")
    yield f"Fine-tuned from weights of ImageNet at {pixels} pixels, as the paper's large networks are"
    yield f"AUROC: {detection(results, 'FineTuned')}."
    large = {"resnet50": "ResNet-50", "efficientnet_b2": "EfficientNet-B2", "vit_base": "ViT-Base"}
    accuracy = means_of(results, "NearOOD", "backbone", variant="classical", metric="ACC", id_set=C10)
    (preset,) = (result.provenance.preset for result in results if result.label == "NearOOD")
    texts = [f"{name} at {preset.pixels(key)} pixels, {accuracy[key]:.2f} % accurate" for key, name in large.items()]
    yield f"predictions: {'; '.join(texts)})"
    yield "the paper fine-tunes ImageNet weights at 224 pixels."


def members(results):
    sources = {
        "10 classes (CIFAR-10": (C10, ("AblationNTU",)),
        "100 classes (CIFAR-100": (C100, ("TrimmedIntervals",)),
        "texts (CLINC150": ("clinc150", ("TextIntents", "TrimmedText")),
    }
    texts = []
    for words, (data, labels) in sources.items():
        aurocs = {}
        for label, N in product(labels, (5, 10, 15, 25)):
            keys = {"id_set": data, "method": "DE", "variant": "credal", "measure": "TU", "metric": "AUROC", "N": N}
            aurocs |= {N: means} if (means := means_of(results, label, "ood_set", **keys)) else {}
        most = max(aurocs)
        gain = Tally("AUROC", tuple(auroc - aurocs[5][ood_set] for ood_set, auroc in aurocs[most].items()))
        texts.append(f"{gain.spread} points for {words}, {most} members)")
    yield f"Going from 5 members to the most measured changes the AUROC of `total` by {listed(texts)}."
    for label, words in (("AblationNEUAPP", "beat 25 averaged ones"), ("AblationNTU", "total uncertainty they do not")):
        few, many = {"variant": "credal", "N": 5}, {"variant": "classical", "N": 25}
        found = differences(results, label, few, many, ("ood_set",), metric="AUROC")
        yield f"{words} ({found.share})"
    yield "Train 5 members for 10 classes and texts, where more add little; train more for 100 classes if you can."
    yield "By epistemic uncertainty 5 credal members"


def harmed(results):
    """At which severities the intersection probability has the higher ECE, by the number of members."""
    by_size = {}
    for N in SIZES:
        credal, averaged = (means_of(results, "AblationStudyEnsemble", "severity", variant=v, N=N) for v in BOTH)
        by_size[N] = [severity for severity in credal if credal[severity] > averaged[severity]]
    return by_size


def calibration_by_members(results):
    by_size = harmed(results)
    fine = listed(f"N = {N}" for N, worse in by_size.items() if not worse)
    places = "; ".join(f"N = {N} at {', '.join(map(str, worse))}" for N, worse in by_size.items() if worse)
    yield f"at every severity for {fine}; it has the higher one for {places}."
    first = min(N for N, worse in by_size.items() if worse)
    assert all(max(worse, default=0) < 5 for worse in by_size.values())  # "unless inputs are badly corrupted"
    yield f"From {first} on predict with the average, unless inputs are badly corrupted."
    yield (
        f"From {first} on the intersection probability is worse calibrated than the average on mildly corrupted images "
        f"({first} members: severity {listed(map(str, by_size[first]))})"
    )


KINDS = {
    "ECE": {"metric": "ECE"},
    "NLL": {"metric": "NLL"},
    "accuracy": {"metric": "ACC"},
    "AUROC by EU": {"metric": "AUROC", "measure": "EU"},
    "AUROC by TU": {"metric": "AUROC", "measure": "TU"},
}


def trimmed(results, against, kind, methods):
    """A tenth left out at each end less another way, for every model of at least ten members."""
    differences = []
    for label in ("TrimmedIntervals", "TrimmedText"):
        models = dict.fromkeys(
            tuple(number.keys[name] for name in ("id_set", "backbone", "method", "N"))
            for number in numbers_of(results, label, method=methods)
            if number.ours and number.keys["N"] >= 10
        )
        for id_set, backbone, method, N in models:
            keys = {"id_set": id_set, "backbone": backbone, "method": method, "N": N, **KINDS[kind]}
            ours, other = (means_of(results, label, "ood_set", variant=v, **keys) for v in ("trim10", against))
            differences += [round(fmean(ours.values()) - fmean(other.values()), 9)] if ours and other else []
    return Tally(KINDS[kind]["metric"], tuple(differences))


def trims(results):
    every = (*BAYESIAN, "DE")
    whole, averaged = (trimmed(results, against, "ECE", every).share for against in BOTH)
    yield (
        f"`trim=0.1` lowers its calibration error on clean inputs in {whole}, to below the average's in "
        f"{averaged.partition(' ')[0]}."
    )
    for words, methods in (("deep ensembles", ("DE",)), ("samples of Bayesian networks", BAYESIAN)):
        tallies = {kind: trimmed(results, "credal", kind, methods) for kind in KINDS}
        below = trimmed(results, "classical", "ECE", methods).share
        parts = ", ".join(f"{kind} in {tally.share} ({tally.spread})" for kind, tally in tallies.items())
        yield f"- {words}: {parts}, ECE below averaging's in {below}"


def which_prediction(results):
    cases = {words: tallies for (words, kind, few), tallies in by_data(results).items() if kind == "ensembles" and few}
    cases.pop(PLACES["cifar10n", "clean"])
    choices = {}
    for words, tallies in cases.items():
        choices.setdefault(better_prediction(tallies), []).append(words)
    assert list(choices) == [AVERAGE, EITHER]
    yield f"Predict with {'; with '.join(f'{choice} for {listed(words)}' for choice, words in choices.items())}."
    texts = []
    for words, tallies in cases.items():
        count = len(tallies["ECE"].differences)
        texts.append(f"{words} {tallies['ECE'].spread} ({count} cell{'s' if count > 1 else ''})")
    yield f"minus that of the average: {'; '.join(texts)}."
    apart = max(abs(value) for tallies in cases.values() for value in tallies["ACC"].differences)
    yield f"Accuracy differs by at most {apart:.2f} points."


def prediction_by_severity(results):
    """The mean over the runs of all trainings of a kind of network."""
    kinds = {}
    for result in results:
        if result.label.partition(" (")[0] in ("ece_cifar10_full", "ece_cifar10_100_de"):
            for panel, averaged, credal in compared_lines(result):
                keys = {**panel.keys.as_dict(), **(panel.substitutes or {})}
                if keys["method"] == "DE":
                    kinds.setdefault((keys["id_set"], keys["backbone"]), []).append((averaged, credal))
    won = [
        sum(
            fmean([b.mean[at] - a.mean[at] for a, b in pairs], [b.n[at] for _, b in pairs]) < 0
            for pairs in kinds.values()
        )
        for at in (0, -1)
    ]
    yield f"at the mildest severity for {won[0]} of {len(kinds)} kinds of network, at the severest for {won[1]}."


def bayesian(results):
    few, many, on = {"variant": "credal", "N": 10}, {"variant": "classical", "N": 50}, ("backbone", "method", "ood_set")
    by_measure = ({"measure": measure, "metric": "AUROC"} for measure in ("EU", "TU"))
    shares = [differences(results, "AblationBNNs", few, many, on, **keys) for keys in by_measure]
    assert shares[0].pick("credal", "", "") == "credal"
    yield "wrap 10 samples instead of averaging 50 if you use epistemic uncertainty."
    yield f"The 10 find more in {shares[0].share}, by total uncertainty in {shares[1].share}."
    better = [
        words
        for (words, kind, _), tallies in by_data(results).items()
        if kind == "Bayesian samples" and better_prediction(tallies) == CREDAL
    ]
    yield f"The intersection probability predicts better for {listed(dict.fromkeys(better))}."
    ensembles, by_epistemic = (
        {"method": "DE", "variant": "credal"},
        {"measure": "EU", "metric": "AUROC", "ood_set": OOD},
    )
    found = differences(results, "OODMain", ensembles, {"method": "EDD"}, ("backbone", "ood_set"), **by_epistemic)
    assert found.pick("worse", "better", "sometimes") == "sometimes"
    yield f"these find more in {found.share}."


def estimates(results, label):
    """Title -> for each metric of a panel its estimates by their names."""
    panels = {}
    for panel in next(result for result in results if result.label == label).panels:
        panels.setdefault(panel.title, []).append({one.name: one for one in panel.estimates})
    return panels


def people(results):
    panels = estimates(results, "HumanDisagreement")
    gains = [gain["credal AU less credal EU"] for _, gain, _ in panels.values()]
    known = sum(gain.low > 0.02 for gain in gains)
    yield f"clearly more closely than epistemic does in {known} of {len(gains)} kinds of network;"
    equal = sum(max(abs(gain.low), abs(gain.high)) <= 0.02 for gain in gains)
    yield f"in {equal} of {len(gains)} kinds of network AU knows no more of it than EU does, within 0.02."
    for title, (ranks, gain, held) in panels.items():
        means, gap = [one.mean for one in ranks.values()], gain["credal AU less credal EU"]
        yield (
            f"- {title}: {min(means):.3f} to {max(means):.3f}, credal AU less EU {gap.mean:+.3f} ({gap.low:+.3f} to "
            f"{gap.high:+.3f}); people's shares of all ten classes inside the intervals for "
            f"{held['all classes'].mean:.1f} % of the images"
        )


def wrong_labels(results):
    texts = []
    for variant, measure in product(("classical", "credal"), ("AU", "EU")):
        means = means_of(results, "LabelNoise", "id_set", variant=variant, measure=measure, metric="mean")
        texts.append(f"{variant} {measure} {means[C10]:.3f} to {means['cifar10n']:.3f}")
    yield f"changes, in bits: {', '.join(texts)}."
    yield f"moves `epistemic` from {means[C10]:.2f} to {means['cifar10n']:.2f} bits."
    yield f"OOD detection with them, AUROC: {detection(results, 'LabelNoise', id_set='cifar10n')}."


def exactness(results):
    (result,) = (result for result in results if isinstance(result, ExactnessResult))
    runs = [run for part in result.parts for run in part.solver or ()]
    first, others = [], []
    for run in runs:
        inside, *outside = (errors.wrong[0] for errors in run.sets.values())
        first.append(inside)
        others += outside
    effects = [effect for run in runs for effect in run.pairs.values()]
    reduced = [
        effect
        for part in result.parts
        for run in part.reduction or ()
        for by_set in run.J.values()
        for effect in by_set.values()
    ]
    wrong, wrong_known = shares(others), shares(first)
    empty, empty_unknown = shares([one.inside_empty for one in reduced]), shares([one.outside_empty for one in reduced])
    change = ends([effect.difference for effect in effects], "+.2f")
    size = f"{result.wrong_sizes[0]:g} bit"
    epistemic, total = (lost_by_reduction(results, measure).text for measure in ("EU", "TU"))
    yield f"The paper's solver misses the lowest entropy by more than {size} on {wrong} of the unknown inputs; exact values"
    yield f"change the AUROC of `epistemic` by {change} points; the printed reduction gives bounds that no distribution meets"
    yield f"for {empty} of the known ones, and exact sets beat its sound form, with the paper's J,"
    yield f"by `epistemic` in {epistemic}"
    yield f"points of AUROC and by `total` in {total} points of AUROC."
    yield f"misses the lowest entropy by more than {size} on {wrong_known} of the test inputs and on {wrong} of the OOD inputs."
    sure = sum(effect.low > 0 for effect in effects)
    yield f"changes AUROC by EU by {change} points; the gain is beyond chance in {sure} of {len(effects)} comparisons."
    yield f"gives an empty set for {empty} of the test inputs and {empty_unknown} of the OOD inputs, by run and J;"


def shares(values):
    return f"{ends([100 * value for value in values], '.0f')} %"


def lost_by_reduction(results, measure):
    """AUROC against unknown inputs, exact less reduced (PIA in its sound form) on the same runs."""
    differences = []
    for result in results:
        entries = {one.keys: one.ours.mean for one in compared_in(result) if one.place == "unknown"}
        pairs = {
            keys: type(keys)(**{**keys.as_dict(), "J": None})
            for keys in entries
            if keys.J is not None and (keys.measure, keys.metric) == (measure, "AUROC")
        }
        differences += [entries[exact] - entries[keys] for keys, exact in pairs.items() if exact in entries]
    return Tally("AUROC", tuple(differences))


def costs(results):
    classes = (3, 10, 20, 100)
    times = {
        variant: means_of(results, "CPUcost", "C", variant=variant)
        for variant in ("credal", "credal, batched", "SLSQP")
    }
    printed = {number.keys["C"]: number.paper.mean for number in numbers_of(results, "CPUcost", variant="credal")}
    assert all(tuple(of) == classes for of in (*times.values(), printed))
    exact, batch, local = (list(of.values()) for of in times.values())
    yield f"with {classes[0]} to {classes[-1]} classes, on one thread"
    yield (
        f"{ends(exact, '.3f')} ms exactly, {ends(batch, '.4f')} ms in a batch, {min(local):.1f} to "
        f"{max(local):.0f} ms by SLSQP, {min(printed.values()):.1f} to {max(printed.values()):.0f} ms in the paper."
    )


def limits(results):
    networks = by_network(results, "TU")
    every = whole(networks.values())
    lost = [name for name, tally in networks.items() if tally.pick("", "averaged", "") == "averaged"]
    gain, mean = median(every.differences), fmean(every.differences)
    assert 0 < gain < 0.5  # "a small gain"
    yield (
        f"`total` beats its averaged counterpart `mean_total` in {every.share}, by {gain:+.2f} points of AUROC in the median, "
        f"{mean:+.2f} in the mean; averaging wins for {', and '.join(lost)}."
    )


def guard_shares(results, metric):
    """By score, or by side where there is none: network -> its numbers, one for each set."""
    found = {}
    for number in numbers_of(results, "GuardPromises", metric=metric):
        if number.ours:
            keys = number.keys
            network = f"{keys['backbone']} on {keys['id_set']}"
            score = keys.get("measure") or keys["variant"]
            found.setdefault(score, {}).setdefault(network, []).append(number.ours.mean)
    return found


def guard_means(results, metric):
    return {
        score: fmean(fmean(values) for values in networks.values())
        for score, networks in guard_shares(results, metric).items()
    }


def everything(found):
    return [value for networks in found.values() for values in networks.values() for value in values]


def guards(results):
    alarms, turned = guard_shares(results, "false_alarms"), guard_shares(results, "turned_away")
    means = guard_means(results, "turned_away")
    best = f"{means['total']:.0f} %"
    assert max(means.values()) - means["total"] < 0.5
    assert f"{means['epistemic']:.0f}" == f"{means['mean_epistemic']:.0f}" == f"{min(means.values()):.0f}"
    kept, away = ends(everything(alarms), ".1f"), ends(everything({"": turned["total"]}), ".0f")
    yield f"Guards that promise 5 % false alarms had {kept} % ({len(turned['total'])} kinds of network, {len(alarms)} scores)"
    yield f"and turned away {best} of the unknown inputs by `total` ({away} % by network and data),"
    yield f"{means['mean_total']:.0f} % by `mean_total`, {means['epistemic']:.0f} % by `epistemic` and `mean_epistemic`."
    accepted, away = guard_means(results, "halved_accepted"), guard_means(results, "halved_turned_away")
    sure = max(accepted, key=accepted.get)
    texts = [
        f"{accepted[name]:.0f} % of the known and turned away {away[name]:.0f} % of the unknown inputs by `{name}`"
        for name in (sure, "total")
    ]
    yield f"Guards that promise half of the error rate accepted {', '.join(texts)}."
    aurocs = {}
    for number in numbers_of(results, "OODTUVggRes", variant="credal", metric="AUROC"):
        aurocs.setdefault(number.keys["severity"], []).append(number.ours.mean)
    first, last = (ends(aurocs[at], ".0f") for at in (min(aurocs), max(aurocs)))
    yield f"AUROC {first} % at the mildest severity, {last} % at the severest."


def guards_in_detail(results):
    (result,) = (result for result in results if result.label == "GuardPromises")
    halves = result.provenance.preset.repeats
    runs = ends([cell.ours.n for cell in result.cells if cell.ours and cell.keys.metric == "false_alarms"], "d")
    yield f"of the test inputs, {halves} for each ensemble, and judged on the others;"
    yield f"five members each, {runs} ensembles of a kind"
    yield "Promised are at most 5 % false alarms, on average"
    yield f"(standard error {standard_error(halves, 10_000):.1f} points for 10,000 images)"
    right, turned = (guard_shares(results, metric)["total"] for metric in ("accepted_ACC", "turned_away"))
    orders = {}
    for data in (C10, C100):
        alike = [name for name in right if name.endswith((f" on {data}", f" on {data}n"))]
        pairs = [(fmean(right[name]), fmean(turned[name])) for name in alike]
        orders[data] = (
            f"{spearmanr(*zip(*pairs, strict=True)).statistic:.2f} over {len(pairs)} networks for {display_name(data)}"
        )
    yield f"what they turn away, by `total`, is {listed(orders.values())}."
    yield "Promised is, with 95 % confidence, half of the error rate of the intersection probability."
    left, broken = everything(guard_shares(results, "halved_left")), everything(guard_shares(results, "halved_broken"))
    yield f"By network and score {ends(left, '.0f')} % of it were left;"
    yield f"{fmean(broken):.0f} % of the halves had more than half ({ends(broken, '.0f')} % by network and score)"
    yield "of a sound guard up to about 12 % may"
    held, sizes = everything(guard_shares(results, "coverage")), everything(guard_shares(results, "classes_in_set"))
    yield f"hold the true class of 95 % of the inputs, fitted and judged on the same halves, do so for {ends(held, '.1f')} %"
    yield f"by the average and by the intersection probability, with {ends(sizes, '.2f')} classes."


def texts(results):
    panels = {title.split()[-1]: parts for title, parts in estimates(results, "TextScores").items()}
    behind = {}
    for name in ("credal total", "credal epistemic"):
        gaps = [max(one.mean for one in aurocs.values()) - aurocs[name].mean for aurocs, *_ in panels.values()]
        behind[name] = ends(gaps, ".2f")
    yield "CLINC150 (150 intents, and requests outside all of them)"
    yield f"credal total is {behind['credal total']} below the best score of a method,"
    yield f"credal epistemic {behind['credal epistemic']}."
    worse = 0
    for method in panels:
        sides = [
            means_of(results, "TextIntents", "variant", method=method, metric=m, ood_set=None) for m in ("ECE", "NLL")
        ]
        worse += all(means["classical"] < means["credal"] for means in sides)
    yield f"The averaged probability has the lower ECE and NLL with {worse} of {len(panels)} methods."
    yield "with 95 % intervals over requests, and what a guard with 5 % false alarms catches:"
    for method, (aurocs, gains, guard) in panels.items():
        best, total = max(aurocs.values(), key=lambda one: one.mean), aurocs["credal total"]
        beside = "" if best is total else f", credal total {total.mean:.2f}"
        pairs = {"TU": "credal total less entropy of the mean", "EU": "credal epistemic less mutual information"}
        less = {kind: gains[name] for kind, name in pairs.items()}
        texts = ", ".join(f"{kind} {one.mean:+.2f} ({one.low:+.2f} to {one.high:+.2f})" for kind, one in less.items())
        caught = ", ".join(f"{guard[f'caught, {name}'].mean:.0f} % by {name}" for name in behind)
        yield f"- {method}: best by {best.name} ({best.mean:.2f}){beside}; credal less averaged {texts}; caught {caught}"


def claims(results):
    found = Counter(verdict(claim, claim.gaps(results)) for claim in CLAIMS)
    assert found["not measured"] == 0
    yield (
        f"Of {len(CLAIMS)} claims of the paper {found['yes']} hold here in every cell measured, {found['partly']} in some, "
        f"{found['no']} in none"
    )
    by_measure = [numbers_of(results, "Overconfident", variant="credal", measure=measure) for measure in ("EU", "TU")]
    pairs = list(zip(*by_measure, strict=True))
    assert all(eu.ours.runs == tu.ours.runs for eu, tu in pairs)  # "the same score"
    printed = []
    for eu, tu in pairs:
        place = f"{display_name(eu.keys['ood_set'])} {eu.keys['metric']}"
        printed.append(f"{place} {eu.paper.mean:.2f} and {tu.paper.mean:.2f}")
    yield f"they read {'; '.join(printed)}."


def beside_the_paper(results):
    averaged = {"variant": ("classical", None), "metric": "ACC"}
    clean, corrupted = (numbers_of(results, "OODMain", ood_set=name, **averaged) for name in (None, "cifar10-c"))
    above = ends([number.ours.mean - number.paper.mean for number in clean], ".1f")
    yield f"predictions (`OODMain`) is {above} points above the paper's."
    here, there = (ends([getattr(number, side).mean for number in corrupted], ".0f") for side in ("ours", "paper"))
    yield f"On corrupted images accuracy is {here} % here and {there} % in the paper."
    near, off = {"ACC": 5.0, "ECE": 0.05}, {}
    for name in PREPARATIONS:
        numbers = numbers_of(results, "CorruptedMistakes", metric=tuple(near), ood_set="cifar10-c", preparation=name)
        for number in numbers:
            off.setdefault(name, {}).setdefault(number.keys["metric"], []).append(number.ours.mean - number.paper.mean)
    farthest = {name: {metric: max(map(abs, of[metric])) / near[metric] for metric in near} for name, of in off.items()}
    assert len(off) == 1 + 8  # "eight mistakes"
    assert not [name for name, of in farthest.items() if max(of.values()) <= 1]
    assert [name for name, of in farthest.items() if of["ACC"] <= 1] == ["swapped"]
    yield "None is within 5 points of the paper's accuracies and 0.05 of its ECEs;"
    yield "height and width swapped is within 5 points of its accuracies alone."
    nearest = min(farthest, key=lambda name: max(farthest[name].values()))
    assert nearest == "unit"
    spreads = {metric: Tally(metric, tuple(values)).spread for metric, values in off[nearest].items()}
    yield (
        f"Nearest by both are images from 0 to 1 that are not normalised, accuracy off by {spreads['ACC']}, ECE by "
        f"{spreads['ECE']}."
    )


def wins_and_losses(results):
    sides = Counter(entry.ours.better for entry in comparisons(results))
    yield f"Of {sides.total()} comparisons credal wins {sides['credal']} and loses {sides['classical']}"


def definitions(results):
    yield "50 is chance"


PARTS = (
    definitions, which_score, near_and_far, scores_of_the_paper, epistemic, large_networks, members, calibration_by_members,
    trims, which_prediction, prediction_by_severity, bayesian, people, wrong_labels, exactness, costs, limits, guards,
    guards_in_detail, texts, claims, beside_the_paper, wins_and_losses,
)  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
def test_the_page_says_what_the_result_files_hold(part, results):
    for sentence in part(results):
        assert sentence in PAGE


def test_no_number_of_the_page_is_unchecked(results):
    rest = PAGE
    for sentence in sorted(chain.from_iterable(part(results) for part in PARTS), key=len, reverse=True):
        rest = rest.replace(sentence, " ")
    assert re.findall(r".{0,40}\d.{0,20}", NAMES.sub(" ", rest)) == []
