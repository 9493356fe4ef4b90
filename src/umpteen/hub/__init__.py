"""The Hugging Face Hub: push a model there, with a card that says what it is and how good."""

from umpteen.hub.card import model_card
from umpteen.hub.pushing import push_to_hub

__all__ = ["model_card", "push_to_hub"]
