"""What a person writes first: a FastAPI route around `Tagger.predict`."""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import umpteen as um

app = FastAPI()
tagger = um.load(sys.argv[1])


class Asked(BaseModel):
    """One text, or several."""

    text: str = ""
    texts: list[str] | None = None


@app.post("/suggest")
def suggest(asked: Asked) -> list[list[tuple[str, float]]]:
    """The ten best labels of each text; FastAPI runs this on a thread."""
    return tagger.predict([asked.text] if asked.texts is None else asked.texts, k=10)


@app.get("/readyz")
def ready() -> dict[str, bool]:
    return {"ready": True}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=0, access_log=False)
