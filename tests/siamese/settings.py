"""SiameseXML with settings of its recipe among the others."""

from dataclasses import fields

import umpteen as um
from umpteen.siamese import SiameseRecipe


def siamese(**settings):
    """Return the model whose parameters and recipe have these settings."""
    names = {each.name for each in fields(SiameseRecipe)}
    recipe = SiameseRecipe(**{name: settings[name] for name in names & settings.keys()})
    return um.SiameseXML(
        recipe=recipe, **{name: settings[name] for name in settings.keys() - names}
    )
