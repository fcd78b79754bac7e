"""Refuse models whose averages do not fit into memory."""

from dotphase.errors import InvalidInput
from dotphase.model.definition import Model
from dotphase.runtime import memory_limit


def check_points(model: Model, points: int) -> None:
    """Refuse a model whose proximal map at this number of points does not fit into memory."""
    _check_model(model, memory_limit.COPIES * 8 * points * (model.length * model.student_rank) ** 2)


def check_fields(model: Model, points: int) -> None:
    """Refuse a model whose fields at this number of points do not fit into memory."""
    columns = model.teacher_rank + model.student_rank
    _check_model(model, 2 * memory_limit.COPIES * 8 * points * model.length * columns)


def _check_model(model: Model, needed: int) -> None:
    available = memory_limit.available_bytes()
    if needed > available:
        sizes = {name: getattr(model, name) for name in ("student_rank", "teacher_rank", "length")}
        field = max(sizes, key=lambda name: sizes[name])
        needed_size, free_size = (
            memory_limit.format_size(needed),
            memory_limit.format_size(available),
        )
        rule = f"needs about {needed_size} and {free_size} are free: use a smaller one"
        raise InvalidInput(field, sizes[field], rule)
