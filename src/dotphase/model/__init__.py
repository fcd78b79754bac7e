"""What is solved and trained: tokens, teacher, student, ridge; and the models that come with it."""

from dotphase.model.definition import Attention as Attention
from dotphase.model.definition import Model as Model
