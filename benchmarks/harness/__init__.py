"""What `trees.py` runs on: data, environments, timed worker processes and the report."""
