"""Studies: grids of points that survive being killed, on one machine or a cluster."""
