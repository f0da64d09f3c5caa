"""Scores in the order of their mean ranks."""

from __future__ import annotations

from credalens_paper.pages.comparisons import catalogue, ranking, ranking_table
from reproduction.tests.pages.made_up import ranked, table


def test_scores_are_in_the_order_of_their_mean_rank_and_the_usual_one_is_compared_pair_by_pair():
    results = [ranked({"total": (90, 90, 60), "mean_total": (89, 89, 80), "epistemic": (5, 5, 5)})]
    overall = ranking(catalogue(results))
    assert overall.ranks == {"total": 4 / 3, "mean_total": 5 / 3, "epistemic": 3}
    assert overall.behind("total") == [0, 0, 20]
    assert overall.less("mean_total", "total") == 6
    text = ranking_table(results)
    assert "| `total` 1.3 " in text
    assert "6.67 / 20.00" in text
    assert "credal total 1.3, entropy of the mean 1.7, credal epistemic 3.0." in text
    assert "score is entropy of the mean for 2 and credal total for 1 of 3." in text
    assert ranking_table([]) == ""


def test_equal_mean_ranks_are_told_apart_by_mean_auroc():
    tied = [ranked({"total": (90, 80, 85), "mean_aleatoric": (80, 95, 85), "epistemic": (70, 70, 70)})]
    assert ranking(catalogue(tied)).best == "mean_aleatoric"


def test_a_pair_with_a_missing_score_is_left_out():
    whole = ranked({"total": (90, 90, 90), "epistemic": (80, 80, 80)})
    both = table("ScoreCatalogue", *whole.cells, *ranked({"total": (1, 1, 1)}, id_set="cifar100").cells)
    assert {pair.id_set for pair in catalogue([both])} == {"cifar10"}
