"""`dotphase diagram`: the phase diagram in alpha and omega."""

from __future__ import annotations

from typing import Any

import click

from dotphase.cli.options import (
    Grid,
    json_option,
    model_options_without,
    points_option,
    prepare_jax,
)
from dotphase.cli.output import print_json, progress_bar


@click.command(
    "diagram",
    epilog="Example: dotphase diagram --alphas 0.1:2:25 --omegas 0:0.5:25 --out d.nc --plot d.png",
)
@click.option("--alphas", type=Grid(above=0), required=True, help="Grid of alpha.")
@click.option("--omegas", type=Grid(at_least=0, at_most=1), required=True, help="Grid of omega.")
@click.option("--out", required=True, metavar="F.nc", help="Dataset to write.")
@click.option("--plot", default=None, metavar="F.png", help="Figure to draw (.png, .svg, .pdf).")
@points_option(14, "log2 of the Gaussian points of every cell.")
@click.option("--omega", hidden=True, expose_value=False, help="Taken and not used: it is swept.")
@model_options_without("omega")
@json_option
def command(
    alphas: list[float],
    omegas: list[float],
    out: str,
    plot: str | None,
    log2_points: int,
    seed: int,
    as_json: bool,
    **model_parts: Any,
) -> int:
    """Map the loss difference of the branches, the gain over the linear layer and the winner;
    draw the critical lines; hatch what is not to be trusted."""
    with progress_bar("solving the grid", total=2 * len(alphas) * len(omegas)) as advance:
        prepare_jax()
        from dotphase.experiments.diagram import diagram
        from dotphase.model.paper import positional_semantic
        from dotphase.storage.files import check_writable, write_dataset

        target = check_writable("--out", out, (".nc",))
        figure = plot and check_writable("--plot", plot, (".png", ".svg", ".pdf"))
        dataset = diagram(
            lambda omega: positional_semantic(omega=omega, **model_parts),
            sorted(alphas),
            sorted(omegas),
            log2_points=log2_points,
            seed=seed,
            progress=lambda solution: advance(),
        )
        write_dataset(dataset, target)
        if figure:
            from dotphase.plot import diagram as draw

            draw(dataset, figure)
    lines = {name: dataset[name].values for name in ("alpha_c", "alpha_l")}
    if as_json:
        converged = float(dataset["converged"].mean())
        print_json({"alphas": sorted(alphas), "omegas": sorted(omegas), **lines,
                    "converged": converged, "out": str(target),
                    "plot": str(figure) if figure else None})  # fmt: skip
    else:
        click.echo("omega    alpha_c  alpha_l")
        for omega, alpha_c, alpha_l in zip(sorted(omegas), *lines.values(), strict=True):
            click.echo(f"{omega:.4f}   {alpha_c:.4f}   {alpha_l:.4f}".replace("nan", "  -   "))
        click.echo(f"wrote {target}" + (f" and {figure}" if figure else ""))
    return 0
