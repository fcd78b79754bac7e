"""Phase diagrams with the other mixing matrix."""

from dotphase.report.phase import phase_item

ITEM = phase_item("other", "Phase diagrams, the other A")
