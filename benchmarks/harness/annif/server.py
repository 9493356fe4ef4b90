"""Annif's own application on a port of this machine: `python -P -m harness.annif.server`.

Its projects and models are those that `harness.annif.theirs` made; `ANNIF_PROJECTS` and
`ANNIF_DATADIR` say where.
"""

import annif
import uvicorn

from harness.annif.theirs import cut_by_expression

if __name__ == "__main__":
    cut_by_expression()
    uvicorn.run(annif.create_app(), host="127.0.0.1", port=0, access_log=False)
