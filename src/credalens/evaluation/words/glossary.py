"""What every word and number of the report means, in one sentence for a reader who has not read the paper."""

from __future__ import annotations

from typing import Final

GLOSSARY: Final[dict[str, str]] = {
    "member": "One of the networks (or posterior samples, or dropout passes) whose predictions are combined.",
    "in distribution (ID)": "Inputs of the kind that the members were trained for.",
    "out of distribution (OOD)": "Inputs of another kind, on which a prediction should not be trusted.",
    "averaging": "The usual way: the mean of the members' probabilities.",
    "credal set": (
        "Every probability distribution that stays, class by class, between the lowest and the highest value that any "
        "member gives."
    ),
    "intersection probability": (
        "The one distribution in the credal set that lies at the same relative height inside every interval; the point "
        "prediction of the credal set."
    ),
    "total uncertainty (TU)": (
        "How undecided the prediction can be: the entropy of the average, or the highest entropy in the credal set."
    ),
    "aleatoric uncertainty (AU)": (
        "Doubt that lies in the input itself: the members' mean entropy, or the lowest entropy in the credal set."
    ),
    "epistemic uncertainty (EU)": (
        "Doubt for lack of knowledge, total minus aleatoric: it is zero where all members agree and grows as they differ."
    ),
    "AUROC": (
        "The chance that an OOD input has a higher uncertainty than an ID input, both drawn at random; 50 % is guessing, "
        "100 % perfect."
    ),
    "AUPRC": (
        "Average share of real OOD inputs among those flagged, over all thresholds; guessing gives the share of OOD inputs "
        "in the data."
    ),
    "FPR95": "Share of ID inputs flagged by mistake when the threshold catches 95 % of the OOD inputs; lower is better.",
    "interval (95 %)": (
        "The range that would hold the true value in 95 of 100 repetitions with new data; a difference whose interval "
        "leaves out zero is more than luck."
    ),
    "accuracy": "Share of inputs whose most probable class is the right one.",
    "ECE": (
        "Expected calibration error: how far confidence and accuracy are apart; 0 means that 80 % confident predictions are "
        "right in 8 cases of 10."
    ),
    "NLL": "Negative log-likelihood in nats: the mean surprise at the true class; lower is better.",
    "Brier score": "Mean squared distance between the predicted probabilities and the truth, from 0 to 2; lower is better.",
    "coverage": "Share of inputs whose set of possible classes holds the true one.",
    "set size": "Mean number of classes that remain possible.",
    "single class": "Share of inputs for which exactly one class remains possible.",
    "accuracy if single": "Accuracy on the inputs for which exactly one class remains possible.",
    "u65": "Utility of set-valued predictions that values a correct set of two classes at 0.65 of a correct single class.",
    "u80": "The same for users who welcome caution: a correct set of two classes is worth 0.80.",
    "mean accuracy on the inputs kept": (
        "The mean over all shares of inputs turned away, the most uncertain first: the area under the curve; higher means "
        "that the uncertainty knows where the mistakes are."
    ),
    "AURC": (
        "Share of wrong predictions among the inputs kept, on average over all shares kept, the least uncertain first; lower "
        "means that the uncertainty knows where the mistakes are."
    ),
    "E-AURC": "AURC less the lowest that is possible with as many mistakes: all of them turned away first; lower is better.",
    "AUGRC": (
        "Share of all inputs that are kept and wrong, on average over all shares kept, the least uncertain first; lower means "
        "that the uncertainty knows where the mistakes are."
    ),
    "dispute": "Share of probability on which the members do not agree: one minus the sum of the lowest values.",
    "threshold": "The uncertainty above which an input is flagged as OOD.",
    "false-alarm rate": "Share of ID inputs that are flagged.",
}
