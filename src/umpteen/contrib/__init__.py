"""Code that runs inside other programs; the rest of umpteen does not import it."""
