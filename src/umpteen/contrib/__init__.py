"""Parts that live inside other programs: nothing here is imported by the rest of umpteen."""
