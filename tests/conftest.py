from hypothesis import settings

# The first call of a kernel compiles it, which takes seconds; the same examples in every run.
settings.register_profile("umpteen", deadline=None, derandomize=True)
settings.load_profile("umpteen")
