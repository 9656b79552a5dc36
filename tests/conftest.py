"""Settings and models that tests share. The machines they run on are noisy, so no example has a deadline."""

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("quoth", deadline=None)
settings.load_profile("quoth")

GOLDEN = Path(__file__).parent / "golden" / "realm"


def converted(folder: Path, *checkpoints: str) -> Path:
    """The model that golden checkpoints make, in a folder of that name."""
    from quoth.models.conversion import convert

    convert([str(GOLDEN / name) for name in checkpoints], folder)
    return folder


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return converted(tmp_path_factory.mktemp("models") / "pretrained", "embedder", "encoder")


@pytest.fixture(scope="module")
def openqa(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return converted(tmp_path_factory.mktemp("models") / "openqa", "openqa", "embedder")
