"""What Ray itself warns about while it works; everything else stays an error."""

import pytest

RAY_WARNINGS = [
    pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore:.*push_based_shuffle:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Tip.*RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO:FutureWarning"),
]
