"""All heads in small, and what is asked of them."""

import numpy as np
import torch

import umpteen as um

DIM, N_LABELS = 6, 23
heads = um.neural.heads

ONE_CLASS = {
    "full": lambda **o: heads.Full(DIM, N_LABELS),
    "product": lambda **o: heads.Product(DIM, N_LABELS, **o),
    "product-groups": lambda **o: heads.Product(DIM, N_LABELS, n_groups=3, **o),
    "product-codes": lambda **o: heads.Product(DIM, N_LABELS, n_codes=3, **o),
    "product-bce": lambda **o: heads.Product(DIM, N_LABELS, loss="bce", **o),
    "cascade-softmax": lambda **o: heads.Cascade(DIM, N_LABELS, hidden=4, **o),
    "sampling": lambda **o: heads.Sampling(DIM, N_LABELS, **o),
    "sampling-own": lambda **o: heads.Sampling(DIM, N_LABELS, sampling="own", **o),
    "adversarial": lambda **o: adversarial(**o),
    "adversarial-paper": lambda **o: adversarial(objective="negative_sampling", **o),
}
SEVERAL = {
    "full-bce": lambda **o: heads.Full(DIM, N_LABELS, loss="bce"),
    "full-pal": lambda **o: heads.Full(DIM, N_LABELS, loss="pick_all_labels"),
    "cascade": lambda **o: heads.Cascade(
        DIM, N_LABELS, hidden=4, **{"n_candidates": 3, "loss": "bce", **o}
    ),
    "sampling-bce": lambda **o: heads.Sampling(DIM, N_LABELS, loss="bce", **o),
    "powerset": lambda **o: heads.Powerset(DIM, N_LABELS),
    "etf": lambda **o: heads.Etf(DIM, N_LABELS, feature_penalty=0.1),
}
ALL = ONE_CLASS | SEVERAL
CODED = [name for name in ALL if name.startswith(("product", "cascade", "sampling"))]
SPARSE = [name for name in ALL if name.startswith(("cascade", "sampling", "adversarial"))]


def adversarial(**options):
    """With a tree that was fitted to something."""
    head = heads.Adversarial(DIM, N_LABELS, noise_dim=3, **{"n_negatives": 7, **options})
    random = np.random.default_rng(0)
    samples = torch.from_numpy(random.standard_normal((90, DIM)))
    return head.fit_noise(samples, torch.arange(90) % N_LABELS, regularizer=1.0)


def features(*leading):
    return torch.randn(*leading, DIM)


def classes(*shape):
    return torch.randint(N_LABELS, shape)


def loss_of(head, *arguments, **options):
    """Groups are drawn anew in each call: the same ones with the same seed."""
    torch.manual_seed(1)
    return head(*arguments, **options)


def gradients(head, *arguments, **options):
    head.zero_grad()
    loss_of(head, *arguments, **options).backward()
    return {name: dense(each.grad) for name, each in head.named_parameters() if each.requires_grad}


def dense(gradient):
    return gradient.to_dense().clone() if gradient.is_sparse else gradient.clone()
