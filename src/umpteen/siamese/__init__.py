"""SiameseXML: samples and label texts, embedded in one space.

One encoder computes vectors of both (Module I, `embedding`). A search among them finds hard
negatives (Module II, `shortlist`). Every label learns a classifier that starts near its text
(Modules III and IV, `refining`). `tower` and `prediction` return the answers.
"""

from umpteen.extras import require

require("torch", "neural")

from umpteen.siamese.recipe import SiameseRecipe  # noqa: E402
from umpteen.siamese.siamese_xml import SiameseXML  # noqa: E402

__all__ = ["SiameseRecipe", "SiameseXML"]
