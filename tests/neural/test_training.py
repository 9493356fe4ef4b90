"""Training: what is interrupted goes on to the same bits, what diverges says so."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")

import torch
from scipy.sparse import csr_matrix, random_array

import umpteen as um
from umpteen.errors import ModelCorruptError, ModelPathError, ParameterError
from umpteen.neural import MLP, Bag, FullHead, blueprint
from umpteen.neural.checkpoint import Keeper
from umpteen.neural.optimizers import clip_gradients, make_optimizers, rate_factor
from umpteen.neural.row_adam import RowAdam
from umpteen.neural.samples import Validation


def data(n=240, n_features=40, n_labels=12):
    """Labels follow from features, with some noise; some rows have no label."""
    random = np.random.default_rng(0)
    X = csr_matrix(random_array((n, n_features), density=0.2, rng=random, dtype=np.float32))
    scores = X.toarray() @ random.normal(size=(n_features, n_labels))
    return X, csr_matrix(scores > np.quantile(scores, 0.85, axis=1, keepdims=True) + 0.2)


def model(**parameters):
    defaults = {
        "encoder": blueprint(Bag, dim=8, residual=True, dropout=0.3), "epochs": 4, "batch_size": 32,
        "learning_rate": 1e-2, "recipe__averaging": 0.5, "recipe__clip": 1.0,
    }  # fmt: skip
    return um.NeuralClassifier().set_params(**{**defaults, **parameters})


def bits(fitted):
    return {name: array.tobytes() for name, array in fitted.weights_.items()}


class StoppedError(Exception):
    pass


def stop_after(monkeypatch, n_saves):
    """As a power cut right after a checkpoint was written."""
    save, count = Keeper.save, [0]

    def counting(keeper, run):
        save(keeper, run)
        count[0] += 1
        if count[0] == n_saves:
            raise StoppedError

    monkeypatch.setattr(Keeper, "save", counting)


@pytest.mark.parametrize("n_saves", [1, 2, 7, 8, 15, 20, 29])
def test_an_interrupted_run_ends_in_the_same_bits(n_saves, tmp_path, monkeypatch):
    """At the start, within an epoch, at its end, with an average, before the last step: with
    dropout, sparse and dense Adam, the power iteration's buffers and a validation split."""
    X, Y = data()
    whole = model().fit(X, Y)
    folder = str(tmp_path / "run")
    with monkeypatch.context() as patch:
        stop_after(patch, n_saves)
        with pytest.raises(StoppedError):
            model(checkpoint=folder, recipe__checkpoint_every=0).fit(X, Y)
    torch.manual_seed(n_saves)  # whatever else the process does
    continued = model(checkpoint=folder).fit(X, Y)
    assert bits(continued) == bits(whole)
    assert continued.history_ == whole.history_


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
@pytest.mark.parametrize("encoder", [blueprint(MLP, dim=8), blueprint(Bag, dim=8, sparse=False)])
def test_every_optimizer_is_continued(optimizer, encoder, tmp_path, monkeypatch):
    X, Y = data()
    parameters = {
        "encoder": encoder, "recipe__optimizer": optimizer, "recipe__validation_fraction": 0.0
    }  # fmt: skip
    whole = model(**parameters).fit(X, Y)
    with monkeypatch.context() as patch:
        stop_after(patch, 11)
        with pytest.raises(StoppedError):
            model(checkpoint=str(tmp_path), recipe__checkpoint_every=0, **parameters).fit(X, Y)
    assert bits(model(checkpoint=str(tmp_path), **parameters).fit(X, Y)) == bits(whole)


KILLED = """
import sys
sys.path.insert(0, {here!r})
from test_training import data, model
from umpteen.neural.checkpoint import Keeper
save, count = Keeper.save, [0]
def telling(keeper, run):
    save(keeper, run)
    count[0] += 1
    if count[0] == 12:
        print("written", flush=True)
Keeper.save = telling
settings = dict(epochs=15, recipe__patience=15, recipe__checkpoint_every=0)
model(checkpoint={folder!r}, **settings).fit(*data())
"""


def test_a_killed_process_is_continued_to_the_same_bits(tmp_path):
    """kill -9 somewhere in the middle, likely while a checkpoint is being written."""
    folder = str(tmp_path / "run")
    code = KILLED.format(here=str(Path(__file__).parent), folder=folder)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "written\n"
    time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    come_to = um.load(folder)
    assert 10 <= 7 * come_to.counters["epoch"] + come_to.counters["batch"] < 105
    settings = {"epochs": 15, "recipe__patience": 15}
    continued = model(checkpoint=folder, **settings).fit(*data())
    assert bits(continued) == bits(model(**settings).fit(*data()))


def test_ctrl_c_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    X, Y = data()
    whole = model().fit(X, Y)
    score, calls = Validation.score, []

    def interrupted(split, network):
        calls.append(split)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return score(split, network)

    folder = str(tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(Validation, "score", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model(checkpoint=folder, recipe__checkpoint_every=0).fit(X, Y)
    assert um.load(folder, verify=True).counters["epoch"] == 2
    assert bits(model(checkpoint=folder).fit(X, Y)) == bits(whole)


def test_a_finished_run_is_not_trained_again(tmp_path):
    X, Y = data()
    first = model(checkpoint=str(tmp_path), random_state=None).fit(X, Y)
    again = model(checkpoint=str(tmp_path), random_state=None).fit(X, Y)  # its seed is kept as well
    assert bits(again) == bits(first)
    assert again.predict_topk(X) == first.predict_topk(X)


def test_a_finished_run_takes_more_epochs(tmp_path, monkeypatch):
    """With a constant rate and no average, it ends as if all epochs had been asked for at once."""
    X, Y = data()
    steady = {"recipe__schedule": "constant", "recipe__warmup": 0.0, "recipe__averaging": 0.0}
    whole = model(epochs=6, **steady).fit(X, Y)
    folder = str(tmp_path / "run")
    model(epochs=3, checkpoint=folder, **steady).fit(X, Y)
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(StoppedError):
            model(epochs=6, checkpoint=folder, recipe__checkpoint_every=0, **steady).fit(X, Y)
    longer = model(epochs=6, checkpoint=folder, **steady).fit(X, Y)
    assert bits(longer) == bits(whole)
    assert longer.history_ == whole.history_


def test_more_epochs_keep_the_best_and_average_only_the_last(tmp_path):
    X, Y = data()
    folder = str(tmp_path / "run")
    short = model(epochs=4, checkpoint=folder).fit(X, Y)
    longer = model(epochs=12, checkpoint=folder, recipe__averaging=0.5).fit(X, Y)
    assert longer.history_["loss"][:4] == short.history_["loss"]
    assert len(longer.history_["loss"]) == 12
    scores = longer.history_["score"]
    assert max(scores) >= max(short.history_["score"])
    assert um.load(folder).counters["n_averaged"] == 6
    with pytest.raises(ModelPathError, match="has 12 epochs, more than epochs=4"):
        model(epochs=4, checkpoint=folder).fit(X, Y)


def test_a_run_that_ended_for_want_of_progress_stays_at_its_end(tmp_path):
    X, Y = data()
    settings = {"learning_rate": 1e-12, "recipe__patience": 2, "recipe__averaging": 0.0}
    first = model(epochs=9, checkpoint=str(tmp_path), **settings).fit(X, Y)
    assert len(first.history_["loss"]) == 3
    again = model(epochs=20, checkpoint=str(tmp_path), **settings).fit(X, Y)
    assert bits(again) == bits(first)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    X, Y = data()
    fitted = model(checkpoint=str(tmp_path / "run")).fit(X, Y)
    for other, Z in ((model(learning_rate=0.5), Y), (model(random_state=1), Y), (model(), Y[::-1])):
        with pytest.raises(ModelPathError, match="belongs to another training"):
            other.set_params(checkpoint=str(tmp_path / "run")).fit(X, Z)
    with pytest.raises(ModelPathError, match="another training"):
        fitted.fit(2 * X + X.astype(bool), Y)
    assert fitted.predict_topk(X, k=1).labels.shape == (240, 1)  # the old model stays
    fitted.save(tmp_path / "model")
    with pytest.raises(ModelPathError, match="holds a NeuralClassifier, not a checkpoint"):
        model(checkpoint=str(tmp_path / "model")).fit(X, Y)


def test_a_folder_with_other_files_is_refused_at_once(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ModelPathError, match=r"thesis\.tex"):
        model(checkpoint=str(tmp_path)).fit(*data())


def test_a_damaged_checkpoint_is_named(tmp_path):
    X, Y = data()
    model(checkpoint=str(tmp_path)).fit(X, Y)
    victim = next(tmp_path.glob("*.npy"))
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(ModelCorruptError, match="bytes"):
        model(checkpoint=str(tmp_path)).fit(X, Y)


def test_a_checkpoint_takes_the_memory_of_the_tensors(tmp_path):
    """Twice a million classes would not fit."""
    from umpteen.neural.checkpoint import Checkpoint
    from umpteen.neural.network import Network
    from umpteen.neural.run import Run

    network = Network(MLP(4, dim=8), FullHead(8, 30))
    run = Run(network, make_optimizers(network, "adamw", 1e-3, 0.0))
    network.head.bias.grad = torch.ones(30)
    run.optimizers[0].step()
    run.keep_as_best()
    made = Checkpoint.of(run, "", 0, torch.device("cpu"))
    head = network.head
    assert np.shares_memory(made.weights["head.weight"], head.weight.detach().numpy())
    assert np.shares_memory(made.best["head.weight"], run.best["head.weight"].numpy())
    states = [state for states in made.optimizers for state in states if state]
    moments = run.optimizers[0].state[head.bias]["exp_avg"].numpy()
    assert any(np.shares_memory(state["exp_avg"], moments) for state in states)


def test_a_diverging_run_stops_with_advice():
    X, Y = data()
    with pytest.raises(ParameterError, match=r"learning_rate=1e\+30; use a tenth of that"):
        model(learning_rate=1e30, recipe__optimizer="sgd", recipe__clip=None, recipe__warmup=0).fit(
            X, Y
        )


def test_the_best_epoch_is_kept(monkeypatch):
    """The scores of epochs are given; kept must be the weights of the best of them."""
    X, Y = data()
    seen, given = [], iter([0.1, 0.7, 0.3, 0.7, 0.2, 0.2, 0.2, 0.9])

    def score(split, network):
        seen.append({name: each.numpy().tobytes() for name, each in network.state_dict().items()})
        return next(given)

    monkeypatch.setattr(Validation, "score", score)
    fitted = model(epochs=8, recipe__patience=5, recipe__averaging=0.0).fit(X, Y)
    assert fitted.history_["score"] == [0.1, 0.7, 0.3, 0.7, 0.2, 0.2, 0.2]  # 5 after the second
    assert bits(fitted) == seen[3]  # the later of two equal ones


def test_without_a_validation_split_the_last_epoch_stays():
    X, Y = data()
    fitted = model(recipe__validation_fraction=0.0, recipe__averaging=0.0).fit(X, Y)
    assert fitted.history_["score"] == []
    assert len(fitted.history_["loss"]) == 4
    assert fitted.history_["loss"][-1] < fitted.history_["loss"][0]


def test_averaging_is_the_mean_over_the_last_epochs(monkeypatch):
    from umpteen.neural.run import Run

    X, Y = data()
    add, seen = Run.add_to_average, []

    def noting(run):
        seen.append({name: each.detach().clone() for name, each in run.network.named_parameters()})
        add(run)

    monkeypatch.setattr(Run, "add_to_average", noting)
    fitted = model(recipe__validation_fraction=0.0, recipe__averaging=0.5, epochs=6).fit(X, Y)
    assert len(seen) == 3
    for name in seen[0]:
        mean = torch.stack([weights[name] for weights in seen]).mean(0).numpy()
        np.testing.assert_allclose(fitted.weights_[name], mean, atol=1e-6)


def test_time_is_limited():
    X, Y = data()
    fitted = model(recipe__max_seconds=1e-9, epochs=1000).fit(X, Y)
    assert len(fitted.history_["loss"]) == 1
    assert fitted.predict_topk(X).labels.shape == (240, 5)


def test_other_random_numbers_are_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    model().fit(*data())
    assert torch.equal(torch.rand(3), expected)


def test_rates_rise_and_fall():
    cosine = [rate_factor(step, 100, "cosine", 0.1) for step in range(100)]
    assert cosine[:10] == pytest.approx([0.1 * step for step in range(1, 11)])
    assert cosine[10] == 1.0
    assert cosine[55] == pytest.approx(0.5)
    assert sorted(cosine[10:], reverse=True) == cosine[10:]
    assert {rate_factor(step, 100, "constant", 0.0) for step in range(100)} == {1.0}


def test_gradients_are_clipped_together():
    """Sparse ones count with what they sum up to."""
    table, weight = torch.nn.Parameter(torch.zeros(4, 2)), torch.nn.Parameter(torch.zeros(2))
    places = torch.tensor([[1, 1, 3]])
    values = torch.tensor([[1.0, 0], [2, 0], [0, 4]])
    table.grad = torch.sparse_coo_tensor(places, values, (4, 2), check_invariants=False)
    weight.grad = torch.tensor([0.0, 12.0])
    clip_gradients([table, weight], 1.3)
    expected = torch.tensor([[0.0, 0], [0.3, 0], [0, 0], [0, 0.4]])
    torch.testing.assert_close(table.grad.to_dense(), expected)
    torch.testing.assert_close(weight.grad, torch.tensor([0.0, 1.2]))
    clip_gradients([table, weight], 100.0)
    torch.testing.assert_close(weight.grad, torch.tensor([0.0, 1.2]))


@pytest.mark.parametrize("form", ["one thread", "two threads", "columns in memory", "double"])
def test_row_adam_is_sparse_adam(form, monkeypatch):
    """Rows come once, twice in a batch, in all batches or in none."""
    monkeypatch.setattr("umpteen.neural.row_adam._ENTRIES_OF_A_THREAD", 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1 + (form == "two threads"))
    torch.manual_seed(0)
    dtype = torch.float64 if form == "double" else torch.float32
    start = torch.ones(3, 7, dtype=dtype).T if form == "columns in memory" else torch.ones(7, 3)
    ours, theirs = (torch.nn.Parameter(start.to(dtype).clone()) for _ in range(2))
    pairs = [(ours, RowAdam([ours], 0.1)), (theirs, torch.optim.SparseAdam([theirs], 0.1))]
    for places in ([0, 3, 3], [3], [], [3, 5, 0, 5], [1, 3]):
        values = torch.randn(len(places), 3, dtype=dtype)
        for table, optimizer in pairs:
            table.grad = torch.sparse_coo_tensor(
                torch.tensor([places]).long(), values, (7, 3), check_invariants=False
            )
            optimizer.step()
        torch.testing.assert_close(ours, theirs)
    assert (ours[[2, 4, 6]] == 1).all()


def test_a_gradient_of_rows_that_do_not_exist_is_refused():
    """Or the rows of another tensor are overwritten."""
    for places in ([-1, 0], [2, 7]):
        table = torch.nn.Parameter(torch.ones(7, 3))
        table.grad = torch.sparse_coo_tensor(
            torch.tensor([places]), torch.ones(2, 3), (7, 3), check_invariants=False
        )
        with pytest.raises(IndexError, match=f"{places[0]} to {places[1]}"):
            RowAdam([table]).step()


def test_what_has_no_sparse_gradient_moves_as_by_adamw():
    torch.manual_seed(0)
    ours, theirs = (torch.nn.Parameter(torch.ones(4, 3)) for _ in range(2))
    settings = {"lr": 0.1, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.2}
    pairs = [(ours, RowAdam([ours], **settings)), (theirs, torch.optim.AdamW([theirs], **settings))]
    for _ in range(4):
        gradient = torch.randn(4, 3)
        for parameter, optimizer in pairs:
            parameter.grad = gradient.clone()
            optimizer.step()
        torch.testing.assert_close(ours, theirs)


def test_an_optimizer_keeps_what_it_knows(tmp_path):
    """Or a training that is continued from `state_dict` begins with other steps."""
    torch.manual_seed(0)
    table = torch.nn.Embedding(5, 2, sparse=True)
    optimizer = RowAdam(table.parameters(), 0.1)

    def step(table, optimizer):
        optimizer.zero_grad()
        table(torch.tensor([1, 3])).square().sum().backward()
        return optimizer.step(lambda: 7.0)

    assert step(table, optimizer) == 7.0
    again = torch.nn.Embedding(5, 2, sparse=True)
    other = RowAdam(again.parameters(), 0.5)
    torch.save([table.state_dict(), optimizer.state_dict()], tmp_path / "state")
    weights, state = torch.load(tmp_path / "state")
    again.load_state_dict(weights)
    other.load_state_dict(state)
    for _ in range(2):
        step(table, optimizer)
        step(again, other)
    assert torch.equal(table.weight, again.weight)


def test_impossible_settings_of_an_optimizer_are_named():
    pairs = ((0.9, 1.0), (0.9,), (0.9, 0.99, 0.999), 0.9, None, "ab", ("a", 0.9))
    for wrong in (
        {"lr": -1.0},
        {"eps": -1.0},
        {"lr": 10**400},
        *({"betas": each} for each in pairs),
    ):
        weight = torch.nn.Parameter(torch.ones(1))
        for options in (wrong, {}), ({}, wrong):
            group, others = {"params": [weight], **options[0]}, options[1]
            with pytest.raises(ParameterError, match=next(iter(wrong))):
                RowAdam([group], **others)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD])
def test_the_state_of_another_optimizer_is_refused(kind):
    """Or the first step fails, after hours of loading and compiling perhaps."""
    weight = torch.nn.Parameter(torch.ones(1))
    other = kind([weight], lr=0.1)
    weight.sum().backward()
    other.step()
    with pytest.raises(ParameterError, match="another optimizer"):
        RowAdam([weight]).load_state_dict(other.state_dict())


def test_only_touched_rows_of_a_table_move():
    bag = Bag(6, dim=2)
    before = bag.table.weight.detach().clone()
    optimizers = make_optimizers(bag, "adamw", 0.1, 0.5)
    assert [type(each).__name__ for each in optimizers] == ["RowAdam"]
    from umpteen.neural import SparseRows

    rows = SparseRows(torch.tensor([0, 2]), torch.tensor([1, 4]), torch.tensor([1.0, 1.0]))
    bag(rows).sum().backward()
    optimizers[0].step()
    moved = (bag.table.weight != before).any(1).nonzero().ravel().tolist()
    assert set(moved) <= {1, 4}
