"""Settings and models that tests share. The machines they run on are noisy, so no example has a deadline."""

from collections.abc import Callable
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


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: exit code, standard output, standard error."""
    from quoth.cli.main import main

    def call(*arguments: object) -> tuple[int, str, str]:
        code = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call
