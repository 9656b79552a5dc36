from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quoth.errors import InputError
from quoth.retrieval import vectors as module
from quoth.retrieval.vectors import Quantizer, TokenVectors, check_precision, save_quantizer, stored
from quoth.storage import save_array

# The largest error of one number: fp16 keeps 11 bits, sq8 half a step of a 255th of 1.2 times the range.
ERROR = {"fp32": 2e-7, "fp16": 2**-11, "sq8": 0.5 * 1.2 / 255}


def unit_vectors(count: int, dimensions: int, seed: int = 0) -> Any:
    x_ND = np.random.default_rng(seed).normal(size=(count, dimensions))
    return (x_ND / np.linalg.norm(x_ND, axis=1, keepdims=True)).astype(np.float32)


def make(c_ND: Any, precision: str, scale: float) -> TokenVectors:
    quantizer = Quantizer.fit(c_ND) if precision == "sq8" else None
    return TokenVectors(stored(c_ND, precision, quantizer), scale, quantizer)


@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize("block", [7, 16384])
def test_similarities_equal_float64(precision: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", block)
    c_ND, q_QD = unit_vectors(100, 24), unit_vectors(5, 24, seed=1)
    found = make(c_ND, precision, 20.0).similarities(q_QD)
    assert found.shape == (5, 100)
    assert found.dtype == np.float32
    exact = 20.0 * q_QD.astype(np.float64) @ c_ND.astype(np.float64).T
    width = np.ptp(c_ND, axis=0) if precision == "sq8" else np.abs(c_ND).max(axis=0)
    bound = 20.0 * ERROR[precision] * np.abs(q_QD) @ width + 1e-5
    assert (np.abs(found - exact) <= bound[:, None]).all()


@pytest.mark.parametrize("precision", ERROR)
def test_a_subset_of_rows_is_that_part_of_all(precision: str) -> None:
    vectors, q_QD = make(unit_vectors(50, 8), precision, 3.0), unit_vectors(2, 8, seed=1)
    everything = vectors.similarities(q_QD)
    for rows in ([], [3], [49, 0, 0, 7]):
        rows_R = np.array(rows, np.int64)
        np.testing.assert_allclose(vectors.similarities(q_QD, rows_R), everything[:, rows_R], atol=1e-6)


@pytest.mark.parametrize("precision", ERROR)
def test_what_is_written_is_read(precision: str, tmp_path: Path) -> None:
    c_ND, q_QD = unit_vectors(30, 8), unit_vectors(2, 8, seed=1)
    vectors = make(c_ND, precision, 2.0)
    save_array(tmp_path / "vectors.npy", vectors.stored_ND)
    if vectors.quantizer:
        save_quantizer(tmp_path, vectors.quantizer)
    opened = TokenVectors.open(tmp_path, 2.0)
    assert opened.stored_ND.dtype == {"fp32": np.float32, "fp16": np.float16, "sq8": np.uint8}[precision]
    np.testing.assert_array_equal(opened.similarities(q_QD), vectors.similarities(q_QD))


def test_quantizer_by_hand() -> None:
    # Range 0 to 10 in the first dimension and a tenth more each side: -1 to 11, in 255 steps. The second is constant.
    quantizer = Quantizer.fit(np.array([[0, 5], [10, 5]], np.float32))
    assert quantizer.low_D == pytest.approx([-1, 5], abs=1e-5)
    assert quantizer.step_D[0] == pytest.approx(12 / 255, rel=1e-5)
    codes = quantizer.encode(np.array([[-1, 5], [11, 5], [-50, 5], [50, 5]], np.float32))
    assert codes[:, 0].tolist() == [0, 255, 0, 255]
    assert quantizer.low_D + quantizer.step_D * codes[0] == pytest.approx([-1, 5], abs=1e-5)
    assert Quantizer.fit(np.zeros((0, 3), np.float32)).step_D.shape == (3,)


def test_precisions() -> None:
    for name in ERROR:
        check_precision(name)
    with pytest.raises(InputError, match="precision 'fp8'; allowed are sq8, fp16, fp32"):
        check_precision("fp8")
