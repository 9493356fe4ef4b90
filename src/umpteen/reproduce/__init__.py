"""The claims of each paper, re-run at a size that fits one machine: one module per paper."""
