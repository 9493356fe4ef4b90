"""What `benchmarks/annif.py` needs: the sets as files, and workers of both systems."""
