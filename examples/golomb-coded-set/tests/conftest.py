"""Failures of the contract show their values, and no test has a deadline."""

from __future__ import annotations

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("policies.testing")
settings.register_profile("anywhere", deadline=None)
settings.load_profile("anywhere")
