"""Phase diagrams with the standard mixing matrix."""

from reproduction.phase import phase_item

ITEM = phase_item("standard", "Phase diagrams, standard A")
