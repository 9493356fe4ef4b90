"""Heads below encoders and the Trainer of Hugging Face, as the docs show them."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
pytest.importorskip("transformers", reason="there is no Transformers: make clients")
pytest.importorskip("accelerate", reason="there is no Transformers: make clients")
import torch
import transformers

import umpteen as um

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
