"""A pretrained text encoder inside `NeuralClassifier`, from texts to a saved model."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="needs umpteen[neural]")
pytest.importorskip("transformers", reason="there is no Transformers: make clients")
pytest.importorskip("tokenizers", reason="there is no Transformers: make clients")
import tokenizers
import torch
import transformers
from scipy.sparse import csr_matrix

import umpteen as um
from umpteen.errors import FeaturesError, ModelCorruptError, ModelNotFoundError, ParameterError
from umpteen.neural import Transformer, blueprint

COLOURS = ["red", "green", "blue", "white", "black", "brown"]
OTHERS = [f"word{i}" for i in range(20)]
LENGTH = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of the library with random weights, as a download would leave it."""
    place = tmp_path_factory.mktemp("bert")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *COLOURS, *OTHERS]
    plain = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]")
    )
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    plain.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(place)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=LENGTH,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(place, safe_serialization=True)
    return str(place)


def texts_and_names(n=200):
    random = np.random.default_rng(0)
    names = random.choice(COLOURS, size=n)
    texts = []
    for name in names:
        words = [name, *random.choice(OTHERS, size=random.integers(0, 5))]
        texts.append(" ".join(random.permutation(words)))
    return texts, [[name] for name in names]


def network(folder, **options):
    encoder = blueprint(Transformer, pretrained=folder, **options.pop("encoder", {}))
    return um.NeuralClassifier(encoder, epochs=6, learning_rate=1e-2, verbose=False, **options)


def test_tokens_are_those_of_the_library(folder):
    texts = ["red word3", "", "white blue red green black brown word1 word2 word3", "unheard"]
    rows = um.text.Tokens(folder, max_length=LENGTH).fit_transform(texts).toarray().astype(int)
    library = transformers.AutoTokenizer.from_pretrained(folder)
    for row, text in zip(rows, texts, strict=True):
        ids = library(text, truncation=True, max_length=LENGTH)["input_ids"]
        assert [each - 1 for each in row if each] == ids


def test_texts_in_names_out(folder, tmp_path, monkeypatch):
    """End to end: the transformer learns, too, and the saved model needs nothing of the folder."""
    texts, names = texts_and_names()
    tokens = um.text.Tokens(folder, max_length=LENGTH)
    tagger = um.Tagger(network(folder), vectorizer=tokens, calibrate=False).fit(texts, names)
    answers = tagger.predict(texts, k=1)
    right = [row[0][0] == name for row, (name,) in zip(answers, names, strict=True)]
    assert np.mean(right) > 0.9
    library = transformers.AutoModel.from_pretrained(folder).embeddings.word_embeddings.weight
    key = "encoder.backbone.embeddings.word_embeddings.weight"
    assert abs(tagger.classifier_.weights_[key] - library.detach().numpy()).max() > 1e-3
    tagger.save(tmp_path / "model")
    monkeypatch.setattr(
        transformers.AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("opened a folder")
    )
    loaded = um.load(tmp_path / "model")
    assert loaded.predict(texts, k=3) == tagger.predict(texts, k=3)
    manifests = "".join(each.read_text("utf-8") for each in (tmp_path / "model").rglob("*.json"))
    assert folder not in manifests


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_features_are_pooled_over_the_tokens_of_each_text(folder, pooling):
    texts, _ = texts_and_names(20)
    X = um.text.Tokens(folder, max_length=LENGTH).fit_transform(texts)
    encoder = Transformer(LENGTH, config=um.neural.transformer.config_of(folder), pooling=pooling)
    encoder.start_from(folder)
    library = transformers.AutoModel.from_pretrained(folder).eval()
    encoder.eval()
    inputs = um.neural.inputs.Inputs.learn(X, "tokens")
    with torch.no_grad():
        found = encoder(inputs.batch(X, torch.device("cpu")))
        for row, features in zip(X, found, strict=True):
            ids = torch.from_numpy(row.data.astype(np.int64) - 1)[None]
            hidden = library(ids).last_hidden_state[0]
            expected = hidden.mean(0) if pooling == "mean" else hidden[0]
            torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)


def test_the_same_seed_gives_the_same_bits(folder):
    texts, names = texts_and_names(60)
    X = um.text.Tokens(folder, max_length=LENGTH).fit_transform(texts)
    y = [COLOURS.index(name) for (name,) in names]
    one, two = (network(folder).set_params(epochs=1).fit(X, y) for _ in range(2))
    assert one.predict_topk(X, k=3) == two.predict_topk(X, k=3)


def test_a_row_without_tokens_has_an_answer(folder):
    texts, names = texts_and_names(60)
    X = um.text.Tokens(folder, max_length=LENGTH).fit_transform(texts)
    fitted = network(folder).set_params(epochs=1).fit(X, [COLOURS.index(each) for (each,) in names])
    assert np.isfinite(fitted.predict_topk(csr_matrix((2, LENGTH)), k=2).scores).all()


def test_what_is_no_token_is_refused(folder):
    y = np.arange(60) % 3
    with pytest.raises(FeaturesError, match=r"use X = umpteen\.text\.Tokens"):
        network(folder).fit(np.full((60, LENGTH), 0.5), y)
    with pytest.raises(ParameterError, match="max_length=8"):
        network(folder).fit(np.ones((60, LENGTH + 1)), y)
    fitted = network(folder).set_params(epochs=1).fit(np.ones((60, LENGTH)), y)
    with pytest.raises(FeaturesError, match="has the token id 98"):
        fitted.predict_topk(np.full((1, LENGTH), 99))
    with pytest.raises(FeaturesError, match="token ids"):
        fitted.predict_topk(np.full((1, LENGTH), -1))


def test_a_model_that_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        network(str(tmp_path / "nowhere")).fit(np.ones((60, LENGTH)), np.arange(60) % 3)
    with pytest.raises(ModelNotFoundError, match="nowhere"):
        um.text.Tokens(str(tmp_path / "nowhere")).fit([])
    with pytest.raises(ParameterError, match="needs a model to start from"):
        um.NeuralClassifier(blueprint(Transformer)).fit(np.ones((60, LENGTH)), np.arange(60) % 3)
    with pytest.raises(ParameterError, match="does not start from pretrained weights"):
        blueprint(um.neural.MLP, pretrained=folder)


def test_a_manipulated_model_is_refused(folder, tmp_path):
    """Sizes beyond the weights, and settings that would open files, have no effect."""
    config = um.neural.transformer.config_of(folder)
    assert not {"auto_map", "attn_implementation", "_name_or_path"} & set(config)
    assert um.neural.transformer.plain_config({"auto_map": {"AutoModel": "x.y"}}) == {}
    fitted = network(folder).set_params(epochs=1).fit(np.ones((60, LENGTH)), np.arange(60) % 3)
    fitted.encoder_.options["config"]["hidden_size"] = 10**9
    fitted.save(tmp_path / "large")
    with pytest.raises(ModelCorruptError, match="too few for"):
        um.load(tmp_path / "large")
    fitted.encoder_.options["config"]["hidden_size"] = 32
    fitted.save(tmp_path / "other")
    with pytest.raises(ModelCorruptError, match="do not fit its network"):
        um.load(tmp_path / "other").predict_topk(np.ones((1, LENGTH)))
