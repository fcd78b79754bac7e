"""Settings of experiments that train many students and measure their final weights only."""

from typing import Any

from dotphase.errors import InvalidInput
from dotphase.training.settings import TrainingSettings

#: Settings that change no result of these experiments.
WITHOUT_EFFECT = ("held_out", "runs_per_batch")


def endpoint_settings(settings: TrainingSettings) -> TrainingSettings:
    """Return settings with steps for the final weights; only double precision is allowed."""
    if settings.dtype != "float64":
        raise InvalidInput("dtype", settings.dtype, "must be float64 in this experiment")
    return settings.for_endpoint()


def describe_settings(settings: TrainingSettings) -> dict[str, Any]:
    """Return the settings that determine the results."""
    described = settings.to_dict()
    return {name: value for name, value in described.items() if name not in WITHOUT_EFFECT}
