"""NeuralClassifier: any encoder with any head."""

from collections.abc import Callable, Iterator
from copy import copy
from math import prod
from numbers import Integral, Real
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix, vstack
from sklearn.utils._param_validation import Interval, StrOptions

from umpteen.base import ExtremeClassifier, HasRecipe, TopK
from umpteen.errors import FeaturesError
from umpteen.neural.agreement import check_ranks, seed_and_keeper
from umpteen.neural.augmentation import Augmentation
from umpteen.neural.blueprints import ENCODERS, Blueprint, as_blueprint
from umpteen.neural.checkpoint import Keeper, arrays_of
from umpteen.neural.decoding import Decoder, check_decoder, decode, fit_decoder
from umpteen.neural.device import find_device, one_thread, seeded
from umpteen.neural.fitting import choose_encoder, flat, image_shape_of, learn_inputs
from umpteen.neural.head import Head
from umpteen.neural.heads import HEADS
from umpteen.neural.inputs import Inputs
from umpteen.neural.network import Network
from umpteen.neural.optimizers import make_optimizers
from umpteen.neural.ranks import Ranks
from umpteen.neural.recipe import (
    NetworkRecipe,
    upgrade_from_1,
    upgrade_from_2,
    upgrade_from_3,
)
from umpteen.neural.run import Run
from umpteen.neural.samples import Samples, split
from umpteen.neural.stored_weights import StoredWeights
from umpteen.neural.training import Settings, settings_of, train
from umpteen.parallel import run as run_tasks
from umpteen.progress import Verbose, progress_bar
from umpteen.storage import Given, Index, NotEmpty, Shape, Sizes, storable
from umpteen.validation import (
    N_JOBS,
    VERBOSE,
    Features,
    check_asked_labels,
    check_parameters,
    is_single_label,
)

_POSITIVE = [Interval(Integral, 1, None, closed="left")]
_FEW = 10_000  # weights: options up to this are possible in any network
_ROWS_AT_A_TIME = 512  # the same whatever is asked: sums of other sizes differ in their last bits
_MOST_VALIDATED = 5  # labels of a sample in the precision of the validation split


@storable(version=4, upgrades={1: upgrade_from_1, 2: upgrade_from_2, 3: upgrade_from_3})
class NeuralClassifier(HasRecipe, ExtremeClassifier):
    """A network whose `encoder` computes features of a sample and whose `head` scores labels.

    Training keeps the epoch with the best precision on a validation split, a tenth of the samples,
    and ends when no better epoch comes. With fewer than 50 samples there is no validation split.
    Sparse rows are scaled to length 1; dense features and the channels of images are standardised
    to mean 0 and deviation 1. Training uses one thread, so that the same seed gives the same bits
    for any `n_jobs`, which is for prediction. On a GPU, training is in half precision, and bits may
    differ. Under `torch.distributed`, all ranks call `fit` with the same samples and train one
    network: each takes its share of every batch and of the head's labels.

    **Scores** are natural logarithms of probabilities, for all heads. If each sample has one class,
    these probabilities add up to 1 over the classes seen in training. With several labels, they are
    those that a sample has the label; heads that compare labels by a softmax ("etf", or
    `loss="pick_all_labels"`) divide a probability of 1 among them. `predict_log_proba` returns the
    log-probabilities of given labels.

    Parameters
    ----------
    encoder : "bag" for sparse rows, "mlp" for dense rows, "conv" or "resnet" for images
        `(n, channels, height, width)`; "auto" chooses by the kind of `X`. To set options, use a
        blueprint: `um.neural.blueprint(um.neural.Bag, dim=512)`. `blueprint(um.neural.Transformer,
        pretrained="folder")` is a pretrained text encoder, for rows of `um.text.Tokens("folder")`.
    head : "full" is the plain last layer, with softmax for a 1-D `Y` and binary cross-entropy
        otherwise. "product", "cascade" and "sampling" of `umpteen.multihead` and "etf" of
        `umpteen.collapse` are for last layers that are too big; "powerset" is for label sets. Each
        has its own loss. To set options, use a blueprint.
    decoder : with `NearestSet()` or `OneVsAll()` of `umpteen.collapse`, `predict` returns whole
        label sets, whose size depends on the sample. The decoder is fitted after training, on the
        features of all training samples. `predict_topk` still returns the head's ranking.
    epochs : maximum number of passes over the samples.
    batch_size : number of samples in a step; "auto" is a 32nd of all samples, from 8 to 256.
    learning_rate : the highest learning rate; the recipe has the schedule.
    recipe : a `umpteen.neural.NetworkRecipe` with training settings that few users change:
        optimizer, schedule, early stopping, averaged weights, time limit. `set_params` takes
        `recipe__patience` and so on.
    checkpoint : folder to which the state is written every few minutes. `fit` with the same data
        and settings continues from it, to the same bits as if it had never been interrupted, even
        after a kill. With a larger `epochs`, it adds epochs.
    device : "auto" is a GPU if there is one, else "cpu".

    >>> X = np.array([[0, 1], [1, 0], [1, 0.1], [0.1, 1]] * 10, dtype=np.float32)
    >>> model = NeuralClassifier().fit(X, [1, 0, 0, 1] * 10)
    >>> model.predict(X[:4])
    array([1, 0, 0, 1])
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("checkpoint",)
    _recipe_class: ClassVar[type[NetworkRecipe]] = NetworkRecipe
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "encoder": [StrOptions({"auto", *ENCODERS}), Blueprint],
        "head": [StrOptions(set(HEADS)), Blueprint],
        "decoder": [object],  # `check_decoder` looks closer
        "epochs": _POSITIVE,
        "batch_size": [*_POSITIVE, StrOptions({"auto"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "recipe": [NetworkRecipe, None],
        "checkpoint": [str, None],
        "device": [str],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
        "verbose": VERBOSE,
    }

    encoder_: Blueprint
    head_: Blueprint
    inputs_: Annotated[Inputs, Given("features")]
    image_shape_: list[int]  # empty for rows
    seen_labels_: Annotated[npt.NDArray[np.int32], Shape("seen"), NotEmpty(), Index("labels")]
    weights_: dict[str, npt.NDArray[Any]]
    history_: dict[str, list[float]]  # loss, and precision on the validation split, of each epoch
    decoder_: Decoder | None
    log_scores_: bool  # False in models of earlier versions, whose scores are those of the head

    def __init__(
        self,
        encoder: str | Blueprint = "auto",
        head: str | Blueprint = "full",
        *,
        decoder: Decoder | None = None,
        epochs: int = 20,
        batch_size: int | str = "auto",
        learning_rate: float = 3e-3,
        recipe: NetworkRecipe | None = None,
        checkpoint: str | None = None,
        device: str = "auto",
        random_state: Any = 0,
        n_jobs: int | None = -1,
        verbose: Verbose = "auto",
    ) -> None:
        self.encoder = encoder
        self.head = head
        self.decoder = decoder
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.recipe = recipe
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, *, watch: Callable[[Self], object] | None = None) -> Self:
        """Learn from samples and their labels; `X` may be images `(n, channels, height, width)`.

        With a `checkpoint` of the same training, continue it.

        `watch(model)` is called after each epoch with the current model, of which it may use
        `features`, `predict_topk` and `history_`. A decoder is fitted only after training.
        """
        check_parameters(self)
        check_decoder(self.decoder, is_single_label(Y))
        device, ranks = find_device(self.device), Ranks.here()  # before an earlier fit is forgotten
        check_ranks(self, ranks, X, Y, watch is not None)
        seed, keeper = seed_and_keeper(self, ranks, X, Y)
        image_shape = image_shape_of(X)
        X, labels = self._check_fit(X, Y)
        self._choose_modules(X, image_shape, labels)
        labelled = np.flatnonzero(np.diff(labels.indptr))
        samples = Samples(
            X, labels[:, self.seen_labels_], self.inputs_, device, self._augmentation(), ranks
        )
        if len(labelled) < len(samples):
            samples = samples.choose(labelled)
        with one_thread(), seeded(seed, device):
            run = self._train(samples, settings_of(self, len(samples), seed), keeper, watch)
        run.network.requires_grad_(False)
        self._take(run)
        if self.decoder is not None:
            self.decoder_ = fit_decoder(self.decoder, self._features(X), labels)
        return self

    def predict(self, X: Any) -> Any:
        """Return the labels of each sample, a sparse indicator `(n, n_labels)`.

        With a decoder, this is the label set that it predicts. With a head for label sets (one
        with `best_set`, such as "powerset"), it is the likeliest set. Otherwise each sample gets
        as many labels as training samples had on average. A classifier that was fitted on a 1-D
        array returns a 1-D array.
        """
        checked = self._check_predict(X)
        if self.decoder_ is not None:
            return decode(self.decoder_, self._features(checked), self.n_labels_)
        head = self._ready_network(find_device(self.device)).head
        if head.predicts_sets and not self.single_label_:
            return self._best_sets(checked)
        return super().predict(X)

    def predict_log_proba(self, X: Any, labels: Any = None) -> npt.NDArray[np.float32]:
        """Return log p of one label per sample, `(n,)`, or of m given ones, `(n, m)`.

        They are the scores of `predict_topk`; -inf for a label without training samples.
        """
        checked = self._check_predict(X)
        asked = check_asked_labels(labels, checked.shape[0], self.n_labels_)
        places = np.searchsorted(self.seen_labels_, asked).clip(max=len(self.seen_labels_) - 1)
        seen = self.seen_labels_[places] == asked

        def answer(network: Network, batch: Any, rows: slice) -> npt.NDArray[np.float32]:
            columns = torch.from_numpy(places[rows]).to(find_device(self.device))
            found = network.head.log_proba(network.encoder(batch), columns).cpu().numpy()
            return np.where(seen[rows], found, -np.inf).astype(np.float32)

        return np.concatenate(self._by_blocks(checked, answer)).reshape(np.shape(labels))

    def features(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the encoder's output for each sample, `(n, out_features)`."""
        return self._features(self._check_predict(X))

    def _train(
        self,
        samples: Samples,
        settings: Settings,
        keeper: Keeper,
        watch: Callable[[Self], object] | None,
    ) -> Run:
        recipe, k = self._used_recipe(), min(self.labels_per_sample_, _MOST_VALIDATED)
        ranks = samples.ranks
        training, validation = split(samples, recipe.validation_fraction, settings.seed, k)
        network = self._build()
        network.head.init_bias(training.Y.getnnz(axis=0), len(training))
        network.head = network.head.shard()
        network.to(samples.device)
        ranks.begin(network.encoder, settings.seed)
        optimizers = make_optimizers(
            network, recipe.optimizer, settings.learning_rate, recipe.weight_decay
        )
        run = Run(network, optimizers, ranks=ranks)
        keeper.begin(run, settings.seed, samples.device)
        total = settings.epochs * training.n_batches(settings.batch_size)

        def tell(run: Run) -> None:
            if watch is not None:
                watch(copy(self)._take(run))
            training.refresh_noise(run.network, run.counters)

        verbose = self.verbose if ranks.rank == 0 else False
        with progress_bar("Training", total, verbose=verbose) as bar:
            train(run, training, validation, settings, keeper, bar, tell)
        return run

    def _take(self, run: Run) -> Self:
        """Be the classifier that a run has come to."""
        self.history_ = {"loss": run.counters.losses, "score": run.counters.scores}
        self._network = Network(run.network.encoder, run.network.head.unshard()).eval()
        self.weights_ = arrays_of(self._network.state_dict())
        self.decoder_, self.log_scores_ = None, True
        return self

    def _topk(self, X: Features, k: int) -> TopK:
        def answer(network: Network, batch: Any, _: slice) -> TopK:
            best = network.topk_log_proba if self.log_scores_ else network.topk
            columns, scores = (values.cpu().numpy() for values in best(batch, k))
            labels = np.where(columns >= 0, self.seen_labels_[columns], -1)
            return TopK(labels, scores).padded(k)  # labels that were never seen are missing

        return TopK.concatenate(self._by_blocks(X, answer))

    def _best_sets(self, X: Features) -> csr_matrix:
        def answer(network: Network, batch: Any, _: slice) -> csr_matrix:
            head: Any = network.head
            return csr_matrix(head.best_set(network.encoder(batch)).cpu().numpy(), dtype=np.int8)

        found = csr_matrix(vstack(self._by_blocks(X, answer)))
        columns = self.seen_labels_[found.indices]
        return csr_matrix((found.data, columns, found.indptr), (X.shape[0], self.n_labels_))

    def _features(self, X: Features) -> npt.NDArray[np.float32]:
        def answer(network: Network, batch: Any, _: slice) -> npt.NDArray[np.float32]:
            return np.asarray(network.encoder(batch).cpu().numpy(), np.float32)

        return np.concatenate(self._by_blocks(X, answer))

    def _by_blocks(self, X: Features, answer: Callable[[Network, Any, slice], Any]) -> list[Any]:
        """Answers of the network for all samples, some rows at a time."""
        device = find_device(self.device)
        network = self._ready_network(device)

        def of_block(first: int) -> Any:
            with one_thread(), torch.inference_mode():
                rows = slice(first, first + _ROWS_AT_A_TIME)
                return answer(network, self.inputs_.batch(X[rows], device), rows)

        blocks = range(0, max(1, X.shape[0]), _ROWS_AT_A_TIME)
        with progress_bar("Predicting", len(blocks), verbose=self.verbose) as bar:
            return run_tasks(of_block, blocks, n_jobs=self.n_jobs, done=lambda _: bar.advance())

    def _choose_modules(self, X: Features, image_shape: list[int], labels: csr_matrix) -> None:
        """Choose the encoder and the head for this data, with all that their blueprints need."""
        self.image_shape_ = image_shape
        self.encoder_ = choose_encoder(self.encoder, X, image_shape)
        self.head_ = as_blueprint(self.head, HEADS).with_default_loss(self.single_label_)
        self.inputs_ = learn_inputs(self.encoder_, X)
        seen = np.flatnonzero(labels.getnnz(axis=0))
        all_labels = self._used_recipe().all_labels
        self.seen_labels_ = (np.arange(self.n_labels_) if all_labels else seen).astype(np.int32)

    def _augmentation(self) -> Augmentation | None:
        name = self._used_recipe().augment
        shape = tuple(self.encoder_.options.get("image_shape", ()))
        return None if name is None else Augmentation(name, shape)

    def _build(self) -> Network:
        """The network before training."""
        encoder = self._build_encoder()
        if isinstance(self.encoder, Blueprint) and self.encoder.pretrained is not None:
            encoder.start_from(self.encoder.pretrained)
        return Network(encoder, self._build_head(encoder))

    def _build_encoder(self) -> Any:
        sizes = () if "image_shape" in self.encoder_.options else (self.n_features_in_,)
        return self.encoder_.build(*sizes)

    def _build_head(self, encoder: Any) -> Any:
        return self.head_.build(encoder.out_features, len(self.seen_labels_))

    def _ready_network(self, device: torch.device) -> Network:
        """The trained network; of a loaded model it is built when it is first asked."""
        if self.__dict__.get("_network") is None:
            weights = StoredWeights(self.weights_)
            encoder = weights.into(self._build_encoder, "encoder.")
            head = weights.into(lambda: self._build_head(encoder), "head.")
            self._network = Network(encoder, head).requires_grad_(False).eval()
        return self._network.to(device)

    def _faults(self, sizes: Sizes) -> Iterator[str]:
        """Yield errors of a loaded object: modules of another kind, or larger than its weights."""
        if getattr(self.encoder_.find(), "kind", None) != self.inputs_.kind:
            yield f"has inputs that are {self.inputs_.kind}, and the encoder {self.encoder_.path}"
        if not issubclass(self.head_.find(), Head):
            yield f"has the head {self.head_.path}, which is none"
        most = max(_FEW, sum(array.size for array in self.weights_.values()))
        for blueprint in (self.encoder_, self.head_):
            if blueprint.largest_size() > most:
                yield f"has {most:,} weights, which is too few for {blueprint}"
        if (np.diff(self.seen_labels_) <= 0).any():
            yield "has seen_labels_ that do not rise"
        for name, array in self.weights_.items():
            # A tree of noise has infinite biases where a side leads to no class.
            if name.endswith((".weight", ".bias")) and not np.isfinite(array).all():
                yield f"has NaN or infinite numbers in the weights {name}"
        for shape in (self.image_shape_, self.encoder_.options.get("image_shape")):
            sides = list(shape or [self.n_features_in_])
            if not all(type(side) is int for side in sides) or prod(sides) != self.n_features_in_:
                yield f"has {self.n_features_in_} features, and images of shape {shape}"

    def _check_fit_input(self, X: Any, Y: Any) -> tuple[Features, csr_matrix]:
        return super()._check_fit_input(flat(X), Y)

    def _check_predict(self, X: Any) -> Features:
        self._check_fitted()
        shape = image_shape_of(X)
        if shape and self.image_shape_ and shape != self.image_shape_:
            raise FeaturesError(
                f"X has images of shape {tuple(shape)}, but the model was trained on "
                f"{tuple(self.image_shape_)} (channels, height, width): resize them"
            )
        return super()._check_predict(flat(X))

    def _forget(self) -> None:
        super()._forget()
        self.__dict__.pop("_network", None)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_network", None)  # `weights_` say it all
        return state
