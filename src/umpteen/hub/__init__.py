"""Push a model to the Hugging Face Hub, with a model card."""

from umpteen.hub.card import model_card
from umpteen.hub.pushing import push_to_hub

__all__ = ["model_card", "push_to_hub"]
