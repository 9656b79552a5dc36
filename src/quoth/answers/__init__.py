"""From hits and spans to predictions with evidence: equations, candidates, ranking, calibration."""
