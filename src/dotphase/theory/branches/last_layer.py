"""Deep attention whose last layer alone is aligned with the teacher."""

from dotphase.theory.branch import branch_of_layer

BRANCH = branch_of_layer(-1)
