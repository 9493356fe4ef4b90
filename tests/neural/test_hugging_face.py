"""Heads below encoders and the Trainer of Hugging Face, as the docs show them."""

import copy
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
pytest.importorskip("transformers", reason="there is no Transformers: make clients")
pytest.importorskip("accelerate", reason="there is no Transformers: make clients")
import torch
import transformers
from safetensors.torch import load_file

import umpteen as um
from umpteen.multihead import LabelCode

PAGE = Path(__file__).parents[2] / "docs" / "multihead.md"
N_CLASSES, N_WORDS, LENGTH = 12, 40, 6


def shown_code():
    """The example of the page."""
    section = PAGE.read_text("utf-8").partition("## With the Trainer of Hugging Face")[2]
    return re.search(r"```py\n(.*?)```", section, re.DOTALL).group(1)


def samples(n, seed):
    """Each class has a word of its own, among others."""
    random = np.random.default_rng(seed)
    classes = random.integers(N_CLASSES, size=n)
    words = random.integers(N_CLASSES + 1, N_WORDS, size=(n, LENGTH))
    words[np.arange(n), random.integers(LENGTH, size=n)] = classes + 1
    mask = torch.ones(LENGTH, dtype=torch.int64)
    return [
        {"input_ids": torch.from_numpy(row), "attention_mask": mask, "labels": int(label)}
        for row, label in zip(words, classes, strict=True)
    ]


@pytest.fixture
def backbone():
    """A transformer that is small enough to be trained from nothing."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=N_WORDS, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=LENGTH, hidden_dropout_prob=0.0,
    )  # fmt: skip
    return transformers.BertModel(config)


def test_the_example_of_the_page_learns(backbone, tmp_path):
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=12, per_device_train_batch_size=32,
        learning_rate=5e-3, report_to=[], save_strategy="no", disable_tqdm=True, use_cpu=True,
        logging_strategy="no", seed=0,
    )  # fmt: skip
    test = samples(100, 1)
    names = {
        "torch": torch, "um": um, "transformers": transformers, "backbone": backbone,
        "n_classes": N_CLASSES, "arguments": arguments, "train": samples(600, 0), "test": test,
    }  # fmt: skip
    exec(compile(shown_code(), str(PAGE), "exec"), names)
    assert names["best"].shape == (100, 5)
    right = names["best"][:, 0] == np.array([each["labels"] for each in test])
    assert right.mean() > 0.9


@pytest.mark.parametrize("kind", ["Full", "Cascade", "Sampling", "Adversarial"])
def test_gradients_reach_the_transformer(backbone, kind):
    options = {"loss": "softmax"} if kind == "Cascade" else {}
    head = getattr(um.neural.heads, kind)(32, N_CLASSES, **options)
    batch = samples(8, 0)
    inputs = torch.stack([each["input_ids"] for each in batch])
    hidden = backbone(inputs).last_hidden_state  # (8, tokens, 32)
    labels = torch.full((8, LENGTH), -100)
    labels[:, 0] = torch.tensor([each["labels"] for each in batch])
    head(hidden, labels).backward()
    assert backbone.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def example():
    """The names that the example of the page defines, but for its own training."""
    names = {"torch": torch}
    exec(compile(shown_code().partition("\n\nhead =")[0], str(PAGE), "exec"), names)
    return names["Classifier"]


def trained(backbone, head, folder, *, epochs, resume=None):
    """Of ten planned epochs, some; a checkpoint after each."""
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), num_train_epochs=10, per_device_train_batch_size=32,
        learning_rate=5e-3, report_to=[], disable_tqdm=True, use_cpu=True, seed=0,
        logging_strategy="no", save_strategy="epoch", eval_strategy="epoch",
        load_best_model_at_end=True, metric_for_best_model="accuracy",
    )  # fmt: skip

    class StopAfter(transformers.TrainerCallback):
        def on_epoch_end(self, args, state, control, **_):
            control.should_training_stop = state.epoch >= epochs

    trainer = transformers.Trainer(
        example()(backbone, head), arguments, train_dataset=samples(300, 0),
        eval_dataset=samples(100, 1), callbacks=[StopAfter()],
        compute_metrics=lambda found: {
            "accuracy": float(np.mean(found.predictions[:, 0] == found.label_ids))
        },
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=resume)
    return trainer


CHECKPOINTED = {
    "product": lambda order: um.neural.heads.Product(32, LabelCode(N_CLASSES, [3, 4], order)),
    "codes": lambda order: um.neural.heads.Product(32, N_CLASSES, n_codes=3),
    "sampling": lambda order: um.neural.heads.Sampling(32, LabelCode(N_CLASSES, [3, 4], order)),
    "cascade": lambda order: um.neural.heads.Cascade(32, LabelCode(N_CLASSES, [3, 4], order)),
    "adversarial": lambda order: um.neural.heads.Adversarial(32, N_CLASSES),
}


@pytest.mark.parametrize("name", CHECKPOINTED)
def test_a_training_that_is_resumed_ends_as_if_it_had_not_stopped(name, backbone, tmp_path):
    """And the order of labels, which is in the checkpoint, takes the place of another one."""
    orders = [np.random.default_rng(seed).permutation(N_CLASSES) for seed in range(2)]
    torch.manual_seed(1)
    head, again = CHECKPOINTED[name](orders[0]), copy.deepcopy(backbone)
    straight = trained(copy.deepcopy(backbone), copy.deepcopy(head), tmp_path / "whole", epochs=4)
    trained(backbone, head, tmp_path / "parts", epochs=2)
    kept = sorted((tmp_path / "parts").glob("checkpoint-*"), key=lambda each: len(each.name))[-1]
    other = CHECKPOINTED[name](orders[1])
    resumed = trained(again, other, tmp_path / "parts", epochs=4, resume=str(kept))
    expected, found = straight.model.state_dict(), resumed.model.state_dict()
    assert expected.keys() == found.keys()
    for key, values in expected.items():
        torch.testing.assert_close(found[key], values, msg=key)
    best = [each.state.best_model_checkpoint.rpartition("-")[2] for each in (straight, resumed)]
    assert best[0] == best[1]
    of_best = load_file(f"{resumed.state.best_model_checkpoint}/model.safetensors")
    assert all(torch.equal(found[key], values) for key, values in of_best.items())
