import os

import pytest


@pytest.fixture
def data_folder():
    if not os.environ.get("QUENCHED_DATA"):
        pytest.skip("QUENCHED_DATA is not set: the real data files are not at hand")
