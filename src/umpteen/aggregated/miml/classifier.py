"""CoAttentionMIML: a network for labels that are given for bags only."""

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse import csr_matrix
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from umpteen.aggregated.background import Background
from umpteen.aggregated.embeddings import Search, embed_labels
from umpteen.aggregated.miml.network import draw_weights
from umpteen.aggregated.miml.prediction import BagScorer
from umpteen.aggregated.miml.recipe import MIMLRecipe, upgrade_from_1
from umpteen.aggregated.miml.training import BagNetwork, BagSamples, fit_network
from umpteen.aggregated.problem import Problem
from umpteen.base import ExtremeClassifier, HasRecipe, TopK
from umpteen.errors import FeaturesError, GroupsError, LabelsError
from umpteen.neural.device import find_device, one_thread
from umpteen.neural.training import Settings
from umpteen.parallel import run
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import Index, NotEmpty, Shape, Sizes, Within, storable
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    as_csr,
    check_features,
    check_group_labels,
    check_groups,
    check_k,
    check_parameters,
    check_seed,
    unit_rows,
)

Floats = npt.NDArray[np.float32]

_SANE = Within(-1e8, 1e8)  # weights whose products over a few layers do not overflow
_POSITIVE = [Interval(Integral, 1, None, closed="left")]


@storable(version=2, upgrades={1: upgrade_from_1})
class CoAttentionMIML(HasRecipe, ExtremeClassifier):
    """A network that learns labels of instances from labels of bags (Shen et al. 2020, section 6).

    Deep-MIML (Feng and Zhou 2017) computes a logit for each instance and label, the largest of
    `n_concepts`; the logit of a bag is the largest of its instances. EAGLE adds a mask: labels are
    embedded in the space of the instances (Algorithm 1), and logits of instances that are closer to
    the label than others of the bag count more.

    **Bags** are given as `groups` and `group_labels`. They may have any size and may overlap. Bags
    without instances or labels are left out. With `Y` alone, every sample is a bag of its own: the
    mask is 1, and this is a plain network. A tenth of the bags is the validation split. `fit`
    keeps the epoch whose predictions for single instances explain the labels of these bags best,
    and stops when no better epoch comes. With fewer than 20 bags there is no validation split.

    **Scores** are the softmax of the logits over the labels seen in training.

    Training uses one thread, so that the same seed gives the same bits on one machine; `n_jobs` is
    for embeddings and prediction. On a GPU, bits may differ.

    Parameters
    ----------
    hidden, n_layers : units of a hidden layer, and number of hidden layers.
    n_concepts : number of logits of each label; the largest counts.
    temperature : sharpness of the mask. At 0 there is no mask, and this is Deep-MIML.
    epochs : maximum number of passes over the bags.
    batch_size : number of bags in a step.
    learning_rate : learning rate of the optimizer.
    recipe : a `umpteen.aggregated.miml.MIMLRecipe` with settings that few users change: the loss,
        label embeddings, early stopping. `set_params` takes `recipe__iterations` and so on.
    device : "auto" is a GPU if there is one, else "cpu".

    >>> X = np.array([[0, 1], [1, 0], [1, 0.1], [0.1, 1], [0, 2], [2, 0]], dtype=np.float32)
    >>> bags = [[0, 4], [1, 2], [3], [5]]
    >>> model = CoAttentionMIML(epochs=60)
    >>> model = model.fit(X, groups=bags, group_labels=[[1, 1], [0, 0], [1], [0]])
    >>> model.predict_topk(X, k=1).labels.ravel()
    array([1, 0, 0, 1, 1, 0], dtype=int32)
    """

    _recipe_class: ClassVar[type[MIMLRecipe]] = MIMLRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden": _POSITIVE,
        "n_layers": _POSITIVE,
        "n_concepts": _POSITIVE,
        "temperature": [Interval(Real, 0, 1e6, closed="both")],
        "epochs": _POSITIVE,
        "batch_size": _POSITIVE,
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "recipe": [MIMLRecipe, None],
        "device": [str],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    coefs_: Annotated[list[Annotated[Floats, _SANE]], Shape("layers"), NotEmpty()]
    intercepts_: Annotated[list[Annotated[Floats, _SANE]], Shape("layers")]
    seen_labels_: Annotated[npt.NDArray[np.int32], Shape("seen"), NotEmpty(), Index("labels")]
    label_embeddings_: Annotated[Features, Shape("labels", "features")]
    validation_scores_: list[float]

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: layers that do not fit one another."""
        width = self.n_features_in_
        for weights, biases in zip(self.coefs_, self.intercepts_, strict=True):
            if weights.ndim != 2 or len(weights) != width or biases.shape != weights.shape[1:]:
                yield f"has a layer of shape {weights.shape} after one of {width} outputs"
                return
            width = len(biases)
        if width == 0 or width % len(self.seen_labels_):
            yield f"has {width} concepts for {len(self.seen_labels_)} labels"

    def __init__(
        self,
        *,
        hidden: int = 128,
        n_layers: int = 1,
        n_concepts: int = 4,
        temperature: float = 3.0,
        epochs: int = 20,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        recipe: MIMLRecipe | None = None,
        device: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.hidden = hidden
        self.n_layers = n_layers
        self.n_concepts = n_concepts
        self.temperature = temperature
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.recipe = recipe
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the network with the settings that the paper gives.

        The paper gives one hidden layer, 20 iterations of Algorithm 1 with steps of 0.1, no mean
        subtracted after instances are normalised, batches of 64 and, for Yelp, a learning rate of
        1e-4. It does not give the hidden units, concepts, temperature, loss and epochs. These have
        their defaults here, except for the loss, which is "list": labels of bags are lists there.
        `paper(recipe__iterations=0)` is the paper's EAGLE-0, and `paper(temperature=0)` Deep-MIML.
        """
        recipe = MIMLRecipe(loss="list", iterations=20, center=False)
        printed = {"batch_size": 64, "learning_rate": 1e-4, "recipe": recipe}
        return cls().set_params(**{**printed, **changes})

    def fit(self, X: Any, Y: Any = None, *, groups: Any = None, group_labels: Any = None) -> Self:
        """Learn from bags, `groups` and their labels, or from samples and their labels `Y`.

        `groups` is a matrix (bags, samples), a list with the sample numbers of each bag, or the bag
        number of each sample. `group_labels` is a matrix (bags, labels) with the count of each
        label in each bag, or a list with the label ids of each bag.
        """
        check_parameters(self)
        find_device(self.device)  # before an earlier fit is forgotten
        if groups is None and group_labels is None:
            X, labels = self._check_fit(X, Y)
            bags = csr_matrix(sparse.identity(X.shape[0], dtype=np.float32, format="csr"))
            return self._learn(X, *_useful(bags, labels))
        return self._learn(*self._check_bags(X, Y, groups, group_labels))

    def predict_bags(self, X: Any, groups: Any, k: int = 5) -> TopK:
        """Return the `k` best labels of each bag of instances; an empty bag gets none."""
        k = check_k(k)
        X = self._check_predict(X)
        bags = check_groups(groups, n_samples=X.shape[0])
        return self._answers(X, bags, min(k, self.n_labels_))

    def _topk(self, X: Features, k: int) -> TopK:
        return self._answers(X, csr_matrix(sparse.identity(X.shape[0], format="csr")), k)

    def _answers(self, X: Features, bags: csr_matrix, k: int) -> TopK:
        with progress_bar("Predicting", bags.shape[0], verbose=self.verbose) as bar:
            scorer = BagScorer.of(self)
            answers = run(
                lambda rows: scorer.topk(X, bags[rows], k),
                scorer.blocks(bags),
                n_jobs=self.n_jobs,
                done=lambda rows: bar.advance(rows.stop - rows.start),
            )
        return TopK.concatenate(answers)

    def _check_bags(
        self, X: Any, Y: Any, groups: Any, group_labels: Any
    ) -> tuple[Features, csr_matrix, csr_matrix]:
        if Y is not None or groups is None or group_labels is None:
            raise GroupsError(
                "fit takes either Y, the labels of each sample, or both groups and group_labels, "
                "the samples and the labels of each bag"
            )
        X = check_features(X)
        if X.shape[0] == 0:
            raise FeaturesError(f"X has no rows (shape={X.shape}); at least 1 is required")
        bags = check_groups(groups, n_samples=X.shape[0])
        counts = check_group_labels(group_labels, n_groups=bags.shape[0])
        bags, counts = _useful(bags, counts)
        if counts.nnz == 0:
            raise LabelsError("every bag that has labels is empty; there is nothing to learn")
        self._forget()
        self.n_features_in_, self.n_labels_ = int(X.shape[1]), int(counts.shape[1])
        self.single_label_ = False
        self.labels_per_sample_ = max(1, round(float(counts.sum()) / X.shape[0]))
        return X, bags, counts

    def _learn(self, X: Features, bags: csr_matrix, counts: csr_matrix) -> Self:
        random, recipe = check_random_state(self.random_state), self._used_recipe()
        units = unit_rows(X)
        found = self._embed(units, bags, counts, check_seed(random))
        self.label_embeddings_ = found if sparse.issparse(X) else found.toarray()
        self.seen_labels_ = np.flatnonzero(counts.getnnz(axis=0)).astype(np.int32)
        embeddings = self.label_embeddings_[self.seen_labels_] if self.temperature else None
        samples = BagSamples(
            units, bags, counts[:, self.seen_labels_], embeddings,
            temperature=self.temperature, scale=_scale(units), device=find_device(self.device),
        )  # fmt: skip
        widths = [self.hidden] * self.n_layers + [self.n_concepts * len(self.seen_labels_)]
        drawn = draw_weights(self.n_features_in_, widths, samples.scale, random)
        network = BagNetwork(*drawn, self.n_concepts, self._loss())
        settings, fraction = self._settings(check_seed(random)), recipe.validation_fraction
        with one_thread():
            self.validation_scores_ = fit_network(
                network, samples, settings, fraction, self.verbose
            )
        self.intercepts_ = [biases.detach().cpu().numpy() for biases in network.biases]
        self.coefs_ = [weights.detach().cpu().numpy() for weights in network.weights]
        self.coefs_[0] = self.coefs_[0] * np.float32(samples.scale)
        return self

    def _embed(
        self, units: Features, bags: csr_matrix, counts: csr_matrix, seed: int
    ) -> csr_matrix:
        if not self.temperature:  # no mask, and so no use of embeddings
            return csr_matrix(([], ([], [])), (self.n_labels_, self.n_features_in_), np.float32)
        numbers = np.arange(bags.shape[0])
        problem = Problem(units, as_csr(units), groups=bags, group_labels=counts, given=numbers)
        plain = Background.none(self.n_features_in_)
        recipe = self._used_recipe()
        background = Background.of_mean(problem.X) if recipe.center else plain
        search = Search(recipe.iterations, recipe.step, background)
        return embed_labels(problem, search, seed, self.n_jobs)

    def _loss(self) -> str:
        loss: str = self._used_recipe().loss
        if loss != "auto":
            return loss
        return "assigned" if self.temperature > 0 else "list"

    def _settings(self, seed: int) -> Settings:
        return Settings(
            epochs=self.epochs, max_seconds=None, batch_size=self.batch_size,
            learning_rate=self.learning_rate, schedule="constant", warmup=0.0, clip=None,
            averaging=0.0, patience=self._used_recipe().patience, seed=seed,
        )  # fmt: skip


def _scale(X: Features) -> float:
    """Return the factor that brings entries of rows of unit length near 1."""
    entries = np.count_nonzero(X.data if sparse.issparse(X) else X)
    return float(np.sqrt(max(entries / X.shape[0], 1.0)))


def _useful(bags: csr_matrix, counts: csr_matrix) -> tuple[csr_matrix, csr_matrix]:
    """Return the bags that have both instances and labels."""
    chosen = np.flatnonzero((bags.getnnz(axis=1) > 0) & (counts.getnnz(axis=1) > 0))
    return bags[chosen], counts[chosen]
