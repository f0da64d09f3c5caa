"""
A stream with drift
===================

A model in use meets one input after the other. After a while other inputs are mixed in. ``DriftAlarm`` watches an
uncertainty score and raises an alarm when the stream is no longer like the calibration data. The probability that it
is ever raised without drift is at most ``alpha``, however long the stream is.

The predictions are real: five ResNet-18 trained on CIFAR-10, which meet images of house numbers (SVHN).
"""

import matplotlib.pyplot as plt
import numpy as np

from credalens import wrap
from credalens.datasets import cifar10_ensemble
from credalens.guard import DriftAlarm

rng = np.random.default_rng(0)
real = cifar10_ensemble()
known, unknown = wrap(real.cifar10), wrap(real.svhn[:, :5000])
print(
    f"epistemic uncertainty in bits: {known.epistemic.mean():.2f} on CIFAR-10, {unknown.epistemic.mean():.2f} on SVHN"
)

# %%
# One half of the CIFAR-10 images calibrates the alarm. The stream has the other half; from its 3000th input on one in
# five is of SVHN.
scores = rng.permutation(known.total)
calibration, stream = scores[:5000], scores[5000:].copy()
START = 3000
drifted = START + np.flatnonzero(rng.random(len(stream) - START) < 0.2)
stream[drifted] = rng.choice(unknown.total, len(drifted))

alarm = DriftAlarm(calibration, alpha=0.05)
evidence = alarm.update(stream)
print(f"alarm: {alarm.alarm}, raised after {alarm.alarm_at} inputs, {alarm.alarm_at - START} after the drift began")

# %%
# The evidence is the value of a bet against "no drift". Without drift it rarely reaches 1 / alpha; with drift it
# grows without end.
quiet = DriftAlarm(calibration, alpha=0.05)
undisturbed = quiet.update(scores[5000:])
print(f"the same stream without drift: alarm {quiet.alarm}, highest evidence {np.exp(undisturbed.max()):.1f}")

figure, axes = plt.subplots(figsize=(6.2, 3.4), layout="constrained")
axes.plot(evidence / np.log(10), label="one in five of SVHN")
axes.plot(undisturbed / np.log(10), label="no drift")
axes.axhline(np.log10(alarm.bound), color="black", linestyle=":", label="alarm")
axes.axvline(START, color="gray", linewidth=0.8)
axes.annotate(
    "drift begins", (START, axes.get_ylim()[1]), xytext=(-4, -4), textcoords="offset points", ha="right", va="top"
)
axes.set(xlabel="inputs", ylabel="evidence (powers of ten)")
axes.legend(frameon=False)
plt.show()
