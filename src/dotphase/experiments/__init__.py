"""What the engines are used for: curves, diagrams, grids of trainings, as labelled datasets."""
