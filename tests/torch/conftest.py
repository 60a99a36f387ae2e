"""The lane's tests: everything here runs on real PyTorch without a GPU (lane.py)."""
import os
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
sys.path.insert(0, str(HERE.parent / "agent"))

if "VRAMTRACK_TORCH_LANE" not in os.environ:
    pytest.skip("these tests need the lane: tests/torch/lane.py test 2.15.0", allow_module_level=True)


@pytest.fixture
def box():
    from sandbox import Sandbox
    from started import BUILD

    with Sandbox(BUILD / "vramtrack") as sandbox:
        yield sandbox
