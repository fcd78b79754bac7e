"""Was the printed alpha_c read off the released runs? A fit of their loss differences.

    python -m reproduction.printed_line --out docs/data/printed_line.json

Released are mean training losses of 24 runs from each start on a grid of alpha and omega. Near the
line where their difference vanishes it is fitted by

    difference = slope(omega) (x - r(omega)) + curvature(omega) (x - r(omega))^2,

where x = alpha/alpha_c - 1 is measured from alpha_c of the theory and slope, curvature and r are
parabolas in omega. Printed values and theory are points of this plane, too, and the
fitted r(omega) has a covariance, enlarged where the fit is worse than the spread of the runs.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import click
import numpy as np
from scipy.optimize import least_squares
from scipy.stats import chi2

from reproduction.released.tables import COUNTS, table

#: Relative distances from alpha_c of the theory up to which differences are fitted.
WIDTHS = (0.25, 0.3, 0.4, 0.5)
#: Degree of slope, curvature and r in omega.
DEGREE = 2
#: Values of omega at which the fitted line is written.
OMEGAS = (0.1, 0.2, 0.3, 0.4)
REPORT = Path(__file__).resolve().parents[1] / "docs/reproduction/report.json"


def theory_line(report: Path) -> dict[float, float]:
    """alpha_c of the theory by omega, from the full report."""
    items = json.loads(report.read_text(encoding="utf-8"))["items"]
    rows = next(item for item in items if item["name"] == "phase-standard")["rows"]
    return {row["at"]["omega"]: row["ours"] for row in rows if row["quantity"] == "alpha_c"}


def printed_line() -> dict[float, float]:
    """The printed alpha_c by omega."""
    tables = tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))
    return {row["omega"]: row["value"] for row in tables["alpha_c"]["rows"]}


def fit(theory: dict[float, float], width: float) -> tuple[np.ndarray, np.ndarray, float, int]:
    """Coefficients of r(omega), their covariance, chi^2 per degree of freedom, and points."""
    runs = table("maps").sel(mixing="standard")
    losses, spreads = runs["train_loss"], runs["train_loss_std"]
    gap = losses.sel(start="semantic") - losses.sel(start="positional")
    error = (spreads.sel(start="semantic") ** 2 + spreads.sel(start="positional") ** 2) ** 0.5
    omega, alpha = np.meshgrid(gap["omega"], gap["alpha"], indexing="ij")
    x = alpha / np.interp(omega, list(theory), list(theory.values())) - 1
    use = (abs(x) < width) & (omega <= max(theory))
    omega, x = omega[use], x[use]
    y, s = (values.transpose("omega", "alpha").values[use] for values in (gap, error))
    s = s / np.sqrt(COUNTS["maps"])
    powers = np.vander(omega, DEGREE + 1)

    def residuals(coefficients: np.ndarray) -> np.ndarray:
        slope, curvature, root = (powers @ part for part in np.split(coefficients, 3))
        return (slope * (x - root) + curvature * (x - root) ** 2 - y) / s

    start = np.zeros(3 * (DEGREE + 1))
    start[DEGREE] = -np.mean(abs(y))
    solution = least_squares(residuals, start, x_scale="jac")
    count = len(y) - len(start)
    scale = 2 * solution.cost / count
    covariance = np.linalg.inv(solution.jac.T @ solution.jac) * max(scale, 1.0)
    return solution.x[-DEGREE - 1 :], covariance[-DEGREE - 1 :, -DEGREE - 1 :], scale, len(y)


def disagreement(
    line: dict[float, float], theory: dict[float, float], root: np.ndarray, covariance: np.ndarray
) -> dict[str, float]:
    """Chi^2 of a line against the fitted one; as many degrees of freedom as r has coefficients.

    The line is projected on parabolas first, with equal weights.
    """
    omegas = np.array([omega for omega in line if omega > 0])
    ratio = [line[omega] / np.interp(omega, list(theory), list(theory.values())) - 1
             for omega in omegas]  # fmt: skip
    difference = np.polyfit(omegas, ratio, DEGREE) - root
    value = float(difference @ np.linalg.solve(covariance, difference))
    return {"chi2": value, "freedom": DEGREE + 1, "p": float(chi2.sf(value, DEGREE + 1))}


def compare(report: Path) -> list[dict[str, Any]]:
    """The fitted line for each width, and how far the printed one and the theory are from it."""
    theory, printed = theory_line(report), printed_line()
    return [compare_width(theory, printed, width) for width in WIDTHS]


def compare_width(
    theory: dict[float, float], printed: dict[float, float], width: float
) -> dict[str, Any]:
    """The same for one width."""
    root, covariance, scale, points = fit(theory, width)
    rows = []
    for omega in OMEGAS:
        power = np.vander([omega], DEGREE + 1)[0]
        rows.append({
            "omega": omega, "printed": printed[omega], "theory": theory[omega],
            "runs": theory[omega] * (1 + float(power @ root)),
            "stderr": theory[omega] * float(np.sqrt(power @ covariance @ power)),
        })  # fmt: skip
    return {
        "width": width, "points": points, "chi2_per_freedom": scale, "rows": rows,
        "printed": disagreement(printed, theory, root, covariance),
        "theory": disagreement(theory, theory, root, covariance),
    }  # fmt: skip


@click.command()
@click.option("--report", type=click.Path(path_type=Path), default=REPORT,
              help="Report with alpha_c of the theory.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), help="JSON file to write.")
def command(report: Path, out: Path | None) -> None:
    """Compare the printed alpha_c with the crossings of the released runs."""
    text = json.dumps(compare(report), indent=1)
    click.echo(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    command()
