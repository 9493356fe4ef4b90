"""Transformers are imported from where `make clients` installed them, if they are nowhere else."""

from tests.serve.clients.install import make_importable

make_importable("transformers")
