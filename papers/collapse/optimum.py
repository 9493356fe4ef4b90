"""The exact optimum of the unconstrained-features model, by a few roots in one variable each.

At the optimum the weight W is a simplex frame, and the feature of a set of m labels is C_m times
the sum of its rows. The rest follows from the squared norm of W and, for each m, by the gap between
the logits of labels inside and outside of the set. For given gaps the best norm is known, and
what remains is a convex function of the gaps,

    sum_m share_m * log(m + (K - m) exp(-gap_m)) + 2 sqrt(penalties) * sqrt(sum_m a_m gap_m^2),

whose minimum is either at zero or where its slopes vanish.
"""

from dataclasses import dataclass
from math import exp, log, sqrt

from scipy.optimize import brentq

from umpteen.errors import ParameterError

_MOST_SAMPLES = 10**250  # times what each costs, still a number of 64 bits


@dataclass(frozen=True)
class Collapsed:
    """The optimum: everything in it is 0 where the penalties are too large."""

    objective: float
    weight_norm: float  # |W|^2, the sum of squares
    gaps: dict[int, float]  # logit of a label in the set minus that of one outside, by multiplicity
    coefficients: dict[int, float]  # C_m: features are C_m times the sum of the set's rows

    @property
    def is_zero(self) -> bool:
        return self.weight_norm == 0


@dataclass(frozen=True)
class _Gap:
    """What the gap of one multiplicity costs and gains."""

    n_labels: int
    multiplicity: int
    share: float  # of the loss: samples of all samples, times labels unless normalized
    cost: float  # a_m: the penalty's square has a_m gap^2

    def loss(self, gap: float) -> float:
        m, others = self.multiplicity, self.n_labels - self.multiplicity
        return self.share * log(m + others * exp(-gap))

    def gain(self, gap: float) -> float:
        """Minus the slope of the loss."""
        m, others = self.multiplicity, self.n_labels - self.multiplicity
        return self.share * others / (m * exp(gap) + others)

    def balanced(self, price: float) -> float:
        """The gap at which the gain is `price * cost * gap`."""

        def excess(gap: float) -> float:
            return self.gain(gap) - price * self.cost * gap

        # exp(gap) must not overflow; the gain is 0 there already
        highest = min(self.gain(0) / (price * self.cost), 700.0)
        if excess(highest) >= 0:  # the gap is too small to change the gain by a bit
            return highest
        return float(brentq(excess, 0, highest, xtol=1e-15))


def collapsed_optimum(
    n_labels: int,
    samples: dict[int, int],
    weight_penalty: float,
    feature_penalty: float,
    normalize: bool,
) -> Collapsed:
    """The optimum for `samples[m]` samples with m labels, spread evenly over their sets."""
    total = sum(samples.values())
    if total > _MOST_SAMPLES:
        raise ParameterError(
            f"n_labels={n_labels} with label sets of {max(samples)} gives more than "
            f"{_MOST_SAMPLES:.0e} samples, too many for float64: use fewer labels or smaller "
            "label sets"
        )
    gaps = [
        _Gap(
            n_labels,
            m,
            share=count / total * (1 if normalize else m),
            cost=count * (n_labels - 1) * m * (n_labels - m) / n_labels,
        )
        for m, count in samples.items()
    ]
    root = sqrt(weight_penalty) * sqrt(feature_penalty)
    # A set of all labels has no outside: its feature is 0 and its loss a constant.
    open_gaps = [gap for gap in gaps if gap.cost > 0]
    values = dict.fromkeys(samples, 0.0) | _best_gaps(open_gaps, 2 * root)
    length = sqrt(sum(gap.cost * values[gap.multiplicity] ** 2 for gap in gaps))
    norm = sqrt(feature_penalty) / sqrt(weight_penalty) * length
    coefficients = {m: gap * (n_labels - 1) / norm if norm else 0.0 for m, gap in values.items()}
    loss = sum(gap.loss(values[gap.multiplicity]) for gap in gaps)
    return Collapsed(loss + 2 * root * length, norm, values, coefficients)


def _best_gaps(gaps: list[_Gap], penalty: float) -> dict[int, float]:
    """Gaps whose gains equal the penalty's slopes, penalty * cost * gap / length, or none."""
    if sqrt(sum(gap.gain(0) ** 2 / gap.cost for gap in gaps)) <= penalty:
        return {}

    def solve(length: float) -> dict[int, float]:
        return {gap.multiplicity: gap.balanced(penalty / length) for gap in gaps}

    def excess(length: float) -> float:
        values = solve(length)
        return sqrt(sum(gap.cost * values[gap.multiplicity] ** 2 for gap in gaps)) - length

    low = high = 1.0
    while excess(low) <= 0:
        low /= 2
        if low < 1e-100:  # zero, but for rounding
            return {}
    while excess(high) >= 0:
        high *= 2
    # Where zero is as good but for rounding, the sign of the excess may be anything.
    return solve(float(brentq(excess, low, high, xtol=1e-15, disp=False)))
