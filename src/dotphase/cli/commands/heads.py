"""`dotphase heads`: which mechanism each head of an attention layer has."""

import click

import dotphase as dp
from dotphase.cli.options import json_option, seed_option
from dotphase.cli.output import print_json
from dotphase.config.parameters import Number


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
    from dotphase.storage.paths import check_folder

    folder = check_folder("--out", out)
    result = dp.heads.shares(**dp.heads.read(file), scores=scores, floor=floor, seed=seed)
    folder.mkdir(exist_ok=True)
    dataset = result.dataset()
    dataset.to_dataframe().to_csv(folder / "heads.csv")
    result.save(folder / "heads.nc")
    dp.plot.heads(dataset, folder / "heads.png")
    names = {"table": "heads.csv", "dataset": "heads.nc", "figure": "heads.png"}
    files = {name: str(folder / file) for name, file in names.items()}
    if as_json:
        print_json({**result.to_dict(), "files": files})
        return 0
    click.echo(str(result))
    for name, path in files.items():
        click.echo(f"{name}: {path}")
    return 0
