from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quoth.arrays import save_array
from quoth.index import vectors as module
from quoth.index.vectors import BITS, KeyVectors, Quantizer, Spread, bytes_of, save_quantizer, stored
from token_tables import fitted

# The largest error of one number: fp16 keeps 11 bits, sq8 half a step of a 255th of 1.2 times the range; sq4 cuts off
# what lies beyond 2.5 standard deviations, of 100 normal numbers never a fifth of the range.
ERROR = {"fp32": 2e-7, "fp16": 2**-11, "sq8": 0.5 * 1.2 / 255, "sq4": 0.2}


def unit_vectors(count: int, dimensions: int, seed: int = 0) -> Any:
    x_ND = np.random.default_rng(seed).normal(size=(count, dimensions))
    return (x_ND / np.linalg.norm(x_ND, axis=1, keepdims=True)).astype(np.float32)


def make(c_ND: Any, precision: str, scale: float) -> KeyVectors:
    quantizer = fitted(c_ND, BITS[precision]) if precision in ("sq8", "sq4") else None
    return KeyVectors(stored(c_ND, precision, quantizer), scale, quantizer)


@pytest.mark.parametrize("precision", ERROR)
@pytest.mark.parametrize("block", [7, 16384])
def test_similarities_equal_float64(precision: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", block)
    c_ND, q_QD = unit_vectors(100, 24), unit_vectors(5, 24, seed=1)
    found = make(c_ND, precision, 20.0).similarities(q_QD)
    assert found.shape == (5, 100)
    assert found.dtype == np.float32
    exact = 20.0 * q_QD.astype(np.float64) @ c_ND.astype(np.float64).T
    width = np.ptp(c_ND, axis=0) if precision in ("sq8", "sq4") else np.abs(c_ND).max(axis=0)
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
    opened = KeyVectors.open(tmp_path, 2.0)
    dtype = {"fp32": np.float32, "fp16": np.float16, "sq8": np.uint8, "sq4": np.uint8}[precision]
    assert opened.stored_ND.dtype == dtype
    assert opened.stored_ND[0].nbytes == bytes_of(precision, 8)
    np.testing.assert_array_equal(opened.similarities(q_QD), vectors.similarities(q_QD))


def test_quantizer_by_hand() -> None:
    # Range 0 to 10 in the first dimension and a tenth more each side: -1 to 11, in 255 steps. The second is constant.
    quantizer = fitted(np.array([[0, 5], [10, 5]], np.float32))
    assert quantizer.low_D == pytest.approx([-1, 5], abs=1e-5)
    assert quantizer.step_D[0] == pytest.approx(12 / 255, rel=1e-5)
    codes = quantizer.encode(np.array([[-1, 5], [11, 5], [-50, 5], [50, 5]], np.float32))
    assert codes[:, 0].tolist() == [0, 255, 0, 255]
    assert quantizer.low_D + quantizer.step_D * codes[0] == pytest.approx([-1, 5], abs=1e-5)
    assert fitted(np.zeros((0, 3), np.float32)).step_D.shape == (3,)


def test_four_bits_by_hand() -> None:
    # 15 zeros and a 16 have the mean 1 and the deviation sqrt(15): 2.5 of them end at 10.68, below the 16 that is cut
    # off, but the low end is the range's. The second and third dimension fill their range; the third stands alone.
    sample = np.array([[0, i, -i] for i in range(15)] + [[16, 15, -15]], np.float32)
    quantizer = fitted(sample, 4)
    assert quantizer.low_D == pytest.approx([0, 0, -15], abs=1e-4)
    assert quantizer.step_D == pytest.approx([(1 + 2.5 * 15**0.5) / 15, 1, 1], rel=1e-5)
    packed = stored(sample, "sq4", quantizer)
    assert packed.shape == (16, 2)
    assert packed[[0, 3, 15]].tolist() == [[0 + 16 * 15, 0], [0 + 16 * 12, 3], [15 + 16 * 0, 15]]
    vectors = KeyVectors(packed, 2.0, quantizer)
    assert vectors.dimensions == 3
    assert vectors.floats(np.array([3, 15])) == pytest.approx(np.array([[0, 3, -3], [10.68, 15, -15]]), abs=0.01)
    assert vectors.similarities(np.array([[0, 1, 2]], np.float32), np.array([3]))[0, 0] == pytest.approx(-6, abs=1e-4)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 7, 32])
@pytest.mark.parametrize("count", [0, 1, 40])
def test_four_bits_of_any_dimension_are_what_floats_says(
    dimensions: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_BLOCK", 16)
    c_ND = np.random.default_rng(0).normal(size=(count, dimensions)).astype(np.float32)
    made = make(c_ND, "sq4", 3.0)
    assert made.quantizer is not None
    low_D, step_D = made.quantizer.low_D, made.quantizer.step_D
    floats_ND = low_D + step_D * np.clip(np.rint((c_ND - low_D) / step_D), 0, 15)
    save_array(tmp_path / "vectors.npy", made.stored_ND)
    save_quantizer(tmp_path, made.quantizer)
    q_QD = unit_vectors(3, dimensions, seed=1)
    for vectors in (made, KeyVectors.open(tmp_path, 3.0)):
        assert (vectors.dimensions, vectors.stored_ND.shape) == (dimensions, (count, (dimensions + 1) // 2))
        np.testing.assert_allclose(vectors.floats(slice(None)), floats_ND, atol=1e-5)
        np.testing.assert_allclose(vectors.similarities(q_QD), 3 * q_QD @ floats_ND.T, atol=1e-4)
        rows_R = np.arange(count)[::-3]
        np.testing.assert_allclose(vectors.take(rows_R).floats(slice(None)), floats_ND[rows_R], atol=1e-5)
        assert stored(vectors.floats(rows_R), "sq4", made.quantizer).tolist() == made.stored_ND[rows_R].tolist()


def test_four_bits_keep_to_one_range() -> None:
    rng = np.random.default_rng(0)
    first, second = (fitted(scale * rng.normal(size=(50, 4)).astype(np.float32), 4) for scale in (1, 3))
    beyond = Spread(4)
    beyond.add(np.full((1, 4), 100, np.float32))
    assert first.widened(beyond) is first
    assert Quantizer.covering([first, second]) is first
    constant = fitted(np.full((9, 1), 5, np.float32), 4)
    assert constant.low_D + constant.step_D * constant.encode(np.array([[5]], np.float32)) == pytest.approx(5)


def test_bytes_of_a_vector() -> None:
    sizes = {"sq8": 384, "sq4": 192, "fp16": 768, "fp32": 1536}
    assert {name: bytes_of(name, 384) for name in sizes} == sizes
    assert bytes_of("sq4", 7) == 4
