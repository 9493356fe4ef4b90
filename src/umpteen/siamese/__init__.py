"""SiameseXML: samples and label texts, embedded in one space.

One encoder makes vectors of both (Module I, `embedding`); hard negatives come from searches among
them (Module II, `shortlist`); every label learns how far it is from its text (Modules III and IV,
`refining`); `tower` and `prediction` answer.
"""

from umpteen.extras import require

require("torch", "neural")

from umpteen.siamese.recipe import SiameseRecipe  # noqa: E402
from umpteen.siamese.siamese_xml import SiameseXML  # noqa: E402

__all__ = ["SiameseRecipe", "SiameseXML"]
