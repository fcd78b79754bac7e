"""``first_layer``: the teacher's weights in the first layer of deep attention."""

from dotphase.finite_d.initializers._layer import layer_start

INITIALIZER = layer_start(0)
