"""What Quoth costs, each number beside a named peer's measured in the same run: `python -m benchmarks`."""
