"""Precision and propensity-scored precision at 1, 3 and 5, and nDCG at 5, in percent."""

from scipy.sparse import csr_matrix

from umpteen import TopK
from umpteen.metrics import ndcg_at_k, precision_at_k, propensity, psp_at_k

DEPTHS = (1, 3, 5)


def accuracy(top: TopK, Y_test: csr_matrix, Y_train: csr_matrix) -> dict[str, float]:
    """`P@k`, `PSP@k` and `nDCG@5` of the answers `top` to the test samples."""
    plain = precision_at_k(Y_test, top, DEPTHS)
    scored = psp_at_k(Y_test, top, DEPTHS, propensity(Y_train))
    names = [f"{metric}@{k}" for metric in ("P", "PSP") for k in DEPTHS]
    found = {name: 100 * float(x) for name, x in zip(names, [*plain, *scored], strict=True)}
    return found | {"nDCG@5": 100 * float(ndcg_at_k(Y_test, top, 5))}
