"""`dotphase wide`: attention of extensive rank."""

from typing import Any

import click

import dotphase as dp
from dotphase.cli.options import json_option, refuse_options, task_options
from dotphase.cli.output import echo, print_json


@click.command("wide", epilog="Example: dotphase wide --alpha 0.7 --rho 0.5 --ridge 0.1 --json")
@task_options("wide")
@click.option("--bayes", is_flag=True, help="The Bayes-optimal learner instead; without omega.")
@json_option
def command(parameters: dict[str, Any], bayes: bool, as_json: bool) -> int:
    """Attention whose width grows with d, at n = alpha d^2 sentences.

    Exit code 3: the iteration did not converge. The numbers at which it ended are still printed.
    """
    if bayes:
        refuse_options(["omega"], "--bayes")
        names = ("alpha", "rho", "length")
        result: Any = dp.wide.bayes(**{name: parameters[name] for name in names})
    else:
        result = dp.wide.solve(**parameters)
    if as_json:
        print_json(result.to_dict())
    else:
        echo(result)
    return 0 if bayes or result.converged else 3
