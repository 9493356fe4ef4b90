"""Gradient boosting of small symmetric trees for one probability.

All nodes of a layer ask the same question, so a tree of depth d is d questions and 2^d values.
"""

import numpy as np

from umpteen.kernels.compiling import inlined, kernel

_RIDGE = 1.0  # added to the curvature of each leaf
_LEAST_CURVATURE = 2.0  # of a leaf that a question may make, on each side


@kernel
def boost(bins, targets, n_bins, n_trees, depth, rate, margins, stride):
    """Fit trees to binned features `(rows, features)` uint8 and targets `(rows,)` 0 / 1.

    Each tree is a Newton step of the logistic loss, times `rate`, from the log-odds `margins`
    `(rows,)`, which are changed to those of all trees. It learns from every `stride`-th row, the
    next tree from the rows after these, and so on. Returns the asked features and the largest bins
    that answer no, both `(trees, depth)`, and the values `(trees, 2^depth)`. Costs two additions
    per learned row, feature and layer.
    """
    n, n_features = bins.shape
    features = np.zeros((n_trees, depth), np.int32)
    cuts = np.zeros((n_trees, depth), np.int32)
    values = np.zeros((n_trees, 1 << depth), np.float64)
    leaf = np.zeros(n, np.int32)
    slopes = np.empty(n)
    curves = np.empty(n)
    sums = np.zeros((1 << depth, n_features, n_bins, 2))
    for tree in range(n_trees):
        first = tree % stride
        for row in range(first, n, stride):
            chance = 1 / (1 + np.exp(-margins[row]))
            slopes[row] = chance - targets[row]
            curves[row] = chance * (1 - chance)
        leaf[:] = 0
        for layer in range(depth):
            n_leaves = 1 << layer
            sums[:n_leaves] = 0
            for row in range(first, n, stride):
                for feature in range(n_features):
                    sums[leaf[row], feature, bins[row, feature], 0] += slopes[row]
                    sums[leaf[row], feature, bins[row, feature], 1] += curves[row]
            feature, cut = _best_question(sums[:n_leaves])
            features[tree, layer], cuts[tree, layer] = feature, cut
            for row in range(n):
                leaf[row] = 2 * leaf[row] + (bins[row, feature] > cut)
        totals = np.zeros((1 << depth, 2))
        for row in range(first, n, stride):
            totals[leaf[row], 0] += slopes[row]
            totals[leaf[row], 1] += curves[row]
        for place in range(1 << depth):
            values[tree, place] = -rate * totals[place, 0] / (totals[place, 1] + _RIDGE)
        for row in range(n):
            margins[row] += values[tree, leaf[row]]
    return features, cuts, values


@inlined
def _best_question(sums):
    """The feature and cut of the largest gain, summed over leaves `(leaves, features, bins, 2)`."""
    n_leaves, n_features, n_bins, _ = sums.shape
    best, best_feature, best_cut = 0.0, 0, n_bins - 1  # asks nothing
    gains = np.empty(n_bins)
    for feature in range(n_features):
        gains[:] = 0
        for leaf in range(n_leaves):
            slope = curve = 0.0
            for place in range(n_bins):
                slope += sums[leaf, feature, place, 0]
                curve += sums[leaf, feature, place, 1]
            left_slope = left_curve = 0.0
            for cut in range(n_bins - 1):
                left_slope += sums[leaf, feature, cut, 0]
                left_curve += sums[leaf, feature, cut, 1]
                right_curve = curve - left_curve
                if left_curve >= _LEAST_CURVATURE and right_curve >= _LEAST_CURVATURE:
                    right_slope = slope - left_slope
                    gains[cut] += (
                        left_slope**2 / (left_curve + _RIDGE)
                        + right_slope**2 / (right_curve + _RIDGE)
                        - slope**2 / (curve + _RIDGE)
                    )
        for cut in range(n_bins - 1):
            if gains[cut] > best:
                best, best_feature, best_cut = gains[cut], feature, cut
    return best_feature, best_cut


@kernel
def boosted_margins(rows, features, thresholds, values, base):
    """Return the log-odds of rows `(n, features)`; a tree goes right where a feature is above."""
    n_trees, depth = features.shape
    margins = np.empty(len(rows), np.float64)
    for row in range(len(rows)):
        total = base
        for tree in range(n_trees):
            place = 0
            for layer in range(depth):
                above = rows[row, features[tree, layer]] > thresholds[tree, layer]
                place = 2 * place + above
            total += values[tree, place]
        margins[row] = total
    return margins
