"""`dotphase heads`: which mechanism each head of an attention layer has."""

import click

import dotphase as dp
from dotphase.cli.options import json_option, seed_option
from dotphase.cli.output import print_json
from dotphase.config.parameters import Number
from dotphase.storage.paths import check_folder


@click.command("heads", epilog="Example: dotphase heads attention.npz --out heads")
@click.argument("file", metavar="FILE.npz|FILE.safetensors")
@click.option("--out", required=True, metavar="DIR", help="Folder for table, dataset and figure.")
@click.option("--scores", is_flag=True, help="The numbers are scores before the softmax.")
@click.option("--floor", type=Number(at_least=0, at_most=0.1), default=0.0,
              help="Raise smaller weights to this.")  # fmt: skip
@seed_option
@json_option
def command(file: str, out: str, scores: bool, floor: float, seed: int, as_json: bool) -> int:
    """Measure what attention of each head depends on: positions, tokens, both, or neither.

    FILE has the array attention[sentence, head, query, key], or [sentence, layer, head, query,
    key], and where known tokens[sentence, position], mask and key_tokens. DIR receives heads.csv,
    heads.nc and heads.png.
    """
    folder = check_folder("--out", out)
    result = dp.heads.shares(**dp.heads.read(file), scores=scores, floor=floor, seed=seed)
    folder.mkdir(exist_ok=True)
    endings = {"table": "csv", "dataset": "nc", "figure": "png"}
    files = {name: str(folder / f"heads.{ending}") for name, ending in endings.items()}
    dataset = result.dataset()
    dataset.to_dataframe().to_csv(files["table"])
    result.save(files["dataset"])
    dp.plot.heads(dataset, files["figure"])
    if as_json:
        print_json({**result.to_dict(), "files": files})
    else:
        click.echo("\n".join([str(result), *(f"{name}: {path}" for name, path in files.items())]))
    return 0
