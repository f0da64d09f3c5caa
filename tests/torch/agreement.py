"""Whether two predictions are the same."""

import numpy as np

from credalens.core.options import TOLERANCE

FIELDS = ("lower", "upper", "probability", "mean", "total", "aleatoric", "epistemic", "aleatoric_bound")
CLASSICAL = ("total", "aleatoric", "epistemic")


def assert_same(prediction, expected, atol=1e-6):
    """The same members, shapes, dtypes and, within ``atol``, values.

    Certified bounds may lie anywhere within the solver's tolerance if members were rounded in another order.
    """
    assert prediction.n_members == expected.n_members
    for field in FIELDS:
        slack = TOLERANCE if atol and field == "aleatoric_bound" else 0.0
        assert_same_array(getattr(prediction, field), getattr(expected, field), atol + slack, field)
    for field in CLASSICAL:
        assert_same_array(getattr(prediction.classical, field), getattr(expected.classical, field), atol, field)


def assert_same_array(x, y, atol, name):
    x, y = np.asarray(x), np.asarray(y)
    assert (x.shape, x.dtype) == (y.shape, y.dtype), name
    np.testing.assert_allclose(x, y, rtol=0, atol=atol, err_msg=name)
