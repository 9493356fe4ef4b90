"""Lemma 2, and what Appendices E and G say that a computation can contradict."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from papers.contents import Block, Cell, Section, Table, Value
from papers.siamese.surrogates import Case, contrastive_loss, ramp_loss

Floats = npt.NDArray[np.float64]

_DIM, _WORDS, _LABELS, _SAMPLES = 4, 12, 6, 30
_CONSTANTS = {"Module I": (0.9, 1.5), "Module III": (0.75, 3.0)}


def normalised(rows: Floats, nu: float) -> Floats:
    """N_nu: [v, nu] at length 1, one number longer than v. N_0 adds a zero."""
    longer = np.concatenate([rows, np.full((*rows.shape[:-1], 1), nu)], axis=-1)
    return units(longer)


def encoded(rows: Floats, table: Floats, matrix: Floats, nu: float) -> Floats:
    """Appendix E: E(x) = N(f + ReLU(R f)) with f = N(ReLU(E x)), both by N_nu."""
    bags = normalised(np.maximum(rows @ table, 0), nu)
    return normalised(bags + np.maximum(bags @ matrix.T, 0), nu)


def units(rows: Floats) -> Floats:
    """Rows of length 1."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-300))


def full_nll(cosines: Floats, relevant: npt.NDArray[np.bool_], c: float, d: float) -> float:
    """The complete negative log-likelihood, over all samples and labels."""
    return sum(
        contrastive_loss(Case(row, own, 1, c, d))
        for row, own in zip(cosines, relevant, strict=True)
    )


class SmallProblem:
    """Samples that share words with the texts of their labels, and an encoder of Module I."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        shape = _SAMPLES, _WORDS
        self.samples = units(random.random(shape) * (random.random(shape) < 0.4))
        shape = _LABELS, _WORDS
        self.texts = units(random.random(shape) * (random.random(shape) < 0.4))
        near = self.samples @ self.texts.T + 0.2 * random.standard_normal((_SAMPLES, _LABELS))
        self.relevant = near > np.quantile(near, 0.75)
        table = random.uniform(-0.3, 1, (_WORDS, _DIM))  # no text is without direction
        c, d = _CONSTANTS["Module I"]

        def loss(flat: Floats) -> float:
            made = flat.reshape(_WORDS, _DIM)
            return full_nll(self.vectors(self.samples, made) @ self.vectors(self.texts, made).T,
                            self.relevant, c, d)  # fmt: skip

        found = minimize(loss, table.ravel(), method="L-BFGS-B", options={"maxiter": 15})
        self.table = found.x.reshape(_WORDS, _DIM)

    def vectors(self, rows: Floats, table: Floats) -> Floats:
        """f by the exact normalisation; R is left out, which changes nothing of what is asked."""
        return units(np.maximum(rows @ table, 0))

    def losses(self, c: float, d: float) -> tuple[float, float, float]:
        """L1 by (0.9, 1.5), L2 at no shift by (c, d), and L2 after Module III."""
        x, z = self.vectors(self.samples, self.table), self.vectors(self.texts, self.table)

        def refined(flat: Floats) -> float:
            own = units(z + flat.reshape(z.shape))
            return full_nll(x @ own.T, self.relevant, c, d)

        found = minimize(refined, np.zeros(z.size), method="L-BFGS-B", options={"maxiter": 30})
        module1 = full_nll(x @ z.T, self.relevant, *_CONSTANTS["Module I"])
        return module1, refined(np.zeros(z.size)), float(found.fun)


def twice_normalised(nu: float, seed: int = 0) -> tuple[float, float]:
    """Mean cosines of random vectors to others, normalised once and twice by N_nu."""
    rows = np.random.default_rng(seed).standard_normal((2, 200, 3))
    once = normalised(rows, nu)
    twice = normalised(once, nu)
    return tuple(float(np.mean(np.abs((pair[0] * pair[1]).sum(axis=-1)))) for pair in (once, twice))  # type: ignore[return-value]


def lipschitz_shares(random: np.random.Generator) -> dict[str, float]:
    """Of one random pair of models, the share of each bound that is reached; above 1 violates."""
    nu, dim = float(random.uniform(0.05, 1)), 5
    pair = random.standard_normal((2, dim)) * random.uniform(0.1, 2)
    other = pair + 10 ** random.uniform(-3, 0) * random.standard_normal((2, dim))
    apart = np.linalg.norm(pair - other, axis=1)
    relu = np.linalg.norm(np.maximum(pair[0], 0) - np.maximum(other[0], 0))
    once = np.linalg.norm(normalised(pair[0], nu) - normalised(other[0], nu))
    shorter = min(np.linalg.norm(pair[0]), np.linalg.norm(other[0]))  # r
    sums = np.linalg.norm(normalised(pair.sum(0), nu) - normalised(other.sum(0), nu))
    return {
        "Claim 10: ReLU is 1-Lipschitz": float(relu / apart[0]),
        "Claim 11: N_nu is 2/nu-Lipschitz": float(once / (2 / nu * apart[0])),
        "Claim 11: 2/sqrt(r² + nu²) for vectors of at least length r": float(
            once / (2 / np.hypot(shorter, nu) * apart[0])
        ),
        "Corollary 12: of sums": float(sums / (2 / nu * apart.sum())),
        **_covering_shares(random, nu),
    }


def _covering_shares(random: np.random.Generator, nu: float) -> dict[str, float]:
    """Claim 9 and Lemmas 6 and 7: two models that are near one another."""
    rows = units(random.random((12, _WORDS)) * (random.random((12, _WORDS)) < 0.5) + 1e-9)
    step = 10 ** random.uniform(-3, -0.5)
    table, matrix = random.standard_normal((_WORDS, _DIM)), random.standard_normal((_DIM + 1,) * 2)
    near_table = table + step * random.standard_normal(table.shape)
    near_matrix = matrix + step * random.standard_normal(matrix.shape)
    eps_table = np.linalg.norm(rows @ (table - near_table), axis=1).max()
    eps_matrix = np.linalg.norm(matrix - near_matrix, 2)
    ours, theirs = encoded(rows, table, matrix, nu), encoded(rows, near_table, near_matrix, nu)
    moved = np.linalg.norm(ours - theirs, axis=1).max()
    bound = 2 / nu * (2 * (np.linalg.norm(matrix, 2) + 1) / nu * eps_table + eps_matrix)
    gamma, k = float(random.uniform(0.1, 1)), 2
    relevant = np.arange(11) < int(random.integers(k, 10))

    def ramp(x: Floats, labels: Floats) -> float:
        return ramp_loss(Case(labels @ x, relevant, k, 0.9, 1.5), gamma)

    by_text = abs(ramp(ours[0], ours[1:]) - ramp(theirs[0], theirs[1:]))
    shifts = 0.3 * random.standard_normal((11, ours.shape[1]))
    near_shifts = shifts + moved / np.sqrt(shifts.shape[1]) * random.uniform(-1, 1, shifts.shape)
    own, near_own = normalised(ours[1:] + shifts, nu), normalised(theirs[1:] + near_shifts, nu)
    query, near_query = (np.append(x[0], 0.0) for x in (ours, theirs))
    by_own = abs(ramp(query, own) - ramp(near_query, near_own))
    eps = max(float(moved), float(np.linalg.norm(shifts - near_shifts, axis=1).max()))
    return {
        "Claim 9: encoders of near matrices": float(moved / bound),
        "Lemma 6: surrogate loss by texts": float(by_text / (4 * moved / gamma)),
        "Lemma 7: surrogate loss by classifiers": by_own / (10 * eps / (gamma * nu)),
    }


def maurey_tail(seed: int, n_terms: int, eta: float, n_draws: int) -> tuple[float, float]:
    """Lemma 16, Eq. 1: how often a matrix of drawn entries is off by R eta, and the bound."""
    random = np.random.default_rng(seed)
    matrix, x = random.standard_normal((4, 6)), units(random.standard_normal(6))
    total = np.abs(matrix).sum()  # R
    spread = float((np.abs(matrix) * x**2).sum())  # Q for this x
    chances = (np.abs(matrix) / total).ravel()
    signs = np.sign(matrix).ravel() * np.tile(x, 4)  # of V_t x, at row i
    rows = np.repeat(np.arange(4), 6)
    far = 0
    for _ in range(n_draws):
        drawn = random.choice(24, n_terms, p=chances)
        estimate = total / n_terms * np.bincount(rows[drawn], signs[drawn], minlength=4)
        far += bool(np.linalg.norm(estimate - matrix @ x) >= total * eta)
    largest = float(np.abs(x).max())
    exponent = n_terms * eta**2 * total / (2 * spread + 4 * largest * total * eta)
    return far / n_draws, float(2 * np.exp(-exponent))


def uniform_maurey_tail(seed: int, n_terms: int, eta: float, n_draws: int) -> tuple[float, float]:
    """The same for the worst of the unit vectors e_1 to e_6, as Claim 15 uses the lemma.

    A finite set covers itself, so that the bound of one vector is multiplied by their number.
    """
    random = np.random.default_rng(seed)
    matrix = random.standard_normal((4, 6))
    total = np.abs(matrix).sum()  # R
    spread = float(np.abs(matrix).sum(axis=0).max())  # Q, the largest of any e_j
    counts = random.multinomial(n_terms, (np.abs(matrix) / total).ravel(), n_draws)
    estimates = total / n_terms * counts.reshape(-1, 4, 6) * np.sign(matrix)
    worst = np.linalg.norm(estimates - matrix, axis=1).max(axis=1)
    exponent = n_terms * eta**2 * total / (2 * spread + 4 * total * eta)
    return float((worst >= total * eta).mean()), float(2 * 6 * np.exp(-exponent))


def sections(quick: bool) -> list[Section]:
    """One on Lemma 2, one on what the generalisation bounds rest on."""
    n_cases = 300 if quick else 10_000
    return [
        Section(
            "Lemma 2: Module III begins where Module I ends",
            "with identical objectives and no shifts, the loss of Module III is that of Module I, "
            "and training only lowers it.",
            f"{_SAMPLES} samples, {_LABELS} labels, {_WORDS} words, {_DIM} dimensions; complete "
            "likelihoods, found by L-BFGS; exact normalisation.",
            partial(_lemma2, 2 if quick else 5),
        ),
        Section(
            "Appendices E and G: what the generalisation bounds rest on",
            "encoders and surrogate losses are Lipschitz in the model (Claims 9 to 12, Lemmas 6 "
            "and 7); the mean of drawn entries of a matrix is near the matrix (Lemma 16).",
            f"{n_cases:,} random pairs of models with N_nu, nu from 0.05 to 1. Lemma 8, Claims 13 "
            "to 15 and Theorems 4 and 5 say that covers of some size exist and bound what happens "
            "over all models: no computation can contradict them, and they are not checked.",
            partial(_bounds, n_cases),
        ),
    ]


def _lemma2(n_problems: int) -> Iterator[Block]:
    rows: list[list[Cell]] = []
    for seed in range(n_problems):
        problem = SmallProblem(seed)
        same, other = (problem.losses(*constants) for constants in _CONSTANTS.values())
        rows.append([f"{seed}", *(Value(value, digits=2) for value in (*same, *other[1:]))])
    yield Table(
        "Complete negative log-likelihoods",
        ["problem", "Module I", "III, same c and d, no shifts", "after training",
         "III, c = 0.75, d = 3, no shifts", "after training"],
        rows,
    )  # fmt: skip
    yield (
        "The lemma needs one objective. Appendix F.2 has other constants in Module III, so that "
        "its loss begins elsewhere; what is compared then is not one likelihood."
    )
    cells: list[list[Cell]] = [
        [f"{nu:g}", *(Value(value, digits=3) for value in twice_normalised(nu))]
        for nu in (0.0, 0.1, 0.5, 1.0)
    ]
    yield Table(
        "N_nu is not idempotent: mean absolute cosines of 200 random pairs of three numbers",
        ["nu", "normalised once", "twice"],
        cells,
    )
    yield "With nu above 0, the proof's N(E(z) + 0) = E(z) does not hold."


def _bounds(n_cases: int) -> Iterator[Block]:
    random = np.random.default_rng(0)
    drawn = [lipschitz_shares(random) for _ in range(n_cases)]
    rows: list[list[Cell]] = []
    for name in drawn[0]:
        shares = np.array([case[name] for case in drawn])
        wrong = f"{int((shares > 1 + 1e-9).sum()):,} of {n_cases:,}"
        rows.append([name, wrong, Value(float(shares.max()), digits=3)])
    yield Table("Bounds", ["bound", "violated", "largest share that is reached"], rows)
    n_draws = max(200, n_cases // 5)
    sizes = (20, 0.1), (100, 0.05), (100, 0.1), (500, 0.05)
    yield _maurey("Lemma 16, Eq. 1: one vector", maurey_tail, sizes, n_draws)
    sizes = (100, 0.05), (500, 0.05), (500, 0.1), (2_000, 0.05)
    yield _maurey("Lemma 16, the worst of six vectors", uniform_maurey_tail, sizes, n_draws)


def _maurey(
    title: str, measure: Callable[[int, int, float, int], tuple[float, float]],
    sizes: Sequence[tuple[int, float]], n_draws: int,
) -> Table:  # fmt: skip
    rows: list[list[Cell]] = []
    for n_terms, eta in sizes:
        share, bound = measure(0, n_terms, eta, n_draws)
        rows.append([f"{n_terms:,}", f"{eta:g}", Value(share, digits=4), Value(bound, digits=4)])
    return Table(
        f"{title}; a matrix of 4 x 6 as the mean of drawn entries",
        ["entries drawn", "eta", "share of draws that are off by R eta", "bound"],
        rows,
    )
