"""The most probable classes of the noise tree, by beam search, in float32."""

import numpy as np
from numba import njit

from umpteen.kernels.noise_table import log_children
from umpteen.kernels.sorting import best_to_front
from umpteen.kernels.topk import best_first, offer


@njit(nogil=True, cache=True)
def beam_topk(tree, samples, k, beam_width):
    """Return the `k` most probable classes that a beam of `beam_width` nodes per level finds.

    Exact where no level has more nodes. O(beam_width * dim * log(n_classes)) for each sample.
    """
    n_leaves = len(tree.label_of)
    labels = np.empty((len(samples), k), np.int32)
    logs = np.empty((len(samples), k), np.float32)
    nodes, children = np.empty(2 * beam_width, np.int32), np.empty(2 * beam_width, np.int32)
    values, child_values = (
        np.empty(2 * beam_width, np.float32),
        np.empty(2 * beam_width, np.float32),
    )
    scores = np.empty(beam_width, np.float32)
    for row in range(len(samples)):
        nodes[0], values[0], kept = 1, 0.0, 1
        width = 1
        while width < n_leaves:
            for i in range(kept):
                scores[i] = _score(tree.weights[nodes[i]], tree.biases[nodes[i]], samples[row])
                children[2 * i], children[2 * i + 1] = 2 * nodes[i], 2 * nodes[i] + 1
            log_children(values[:kept], scores[:kept], child_values)
            nodes, children = children, nodes
            values, child_values = child_values, values
            width, kept = 2 * width, 2 * kept
            if kept > beam_width and width < n_leaves:
                best_to_front(nodes[:kept], values[:kept], beam_width)
                kept = beam_width
        _offer_leaves(tree, nodes[:kept], values[:kept], labels[row], logs[row])
    return labels, logs


@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _score(weights, bias, sample):
    total = np.float32(0)
    for j in range(len(sample)):
        total += weights[j] * sample[j]
    return total + bias


@njit(nogil=True, cache=True)
def _offer_leaves(tree, nodes, values, labels, logs):
    n_leaves, kept = len(tree.label_of), 0
    for i in range(len(nodes)):
        label = tree.label_of[nodes[i] - n_leaves]
        if label >= 0:
            kept = offer(labels, logs, kept, label, values[i])
    best_first(labels, logs, kept)
