"""The sampling profiler pysample. It is a program: run `pysample`, or `python -m pysample`."""
