"""Labels that are known only per group of samples: EAGLE (Shen et al., 2020)."""
