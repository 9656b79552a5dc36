"""Arrays by the type of their elements, as signatures name them.

Knows: NumPy's types. Does not know: shapes, which the suffixes of names tell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
"""Vectors and similarities: what encoders compute and tables store."""
Doubles = NDArray[np.float64]
"""Scores and probabilities: sums of many terms."""
Ints = NDArray[np.int64]
"""Counts, places and token ids."""
Rows = NDArray[np.int64]
"""Numbers of keys, passages or documents: rows of a table."""
Flags = NDArray[np.uint8]
"""Where phrases may start and end (`boundaries.boundary_flags`)."""
