"""Phase diagrams with the other mixing matrix."""

from reproduction.phase import phase_item

ITEM = phase_item("other", "Phase diagrams, the other A")
