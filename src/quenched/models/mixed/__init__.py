"""Mixed models by formula."""

from quenched.models.mixed.mixed_model import MixedModel

__all__ = ["MixedModel"]
