"""Settings of the tests. The machines they run on are noisy, so no example has a deadline."""

from hypothesis import settings

settings.register_profile("quoth", deadline=None)
settings.load_profile("quoth")
