"""`dotphase histogram`: small transformers that count by positional or semantic attention."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import dotphase as dp
from dotphase import histogram
from dotphase.cli.options import POSITIVE, DistinctValues, json_option, seed_option
from dotphase.cli.output import print_json, progress_bar
from dotphase.config.parameters import Integer, Number

#: Default number of epochs, and the accuracy at which they end early.
EPOCHS, TARGET = 200, 0.998
#: Sequences whose attention is drawn by default.
SEQUENCES = ("BBCCDDBBBB", "ABCDEFGHIJ", "AAAAABBBCC")


@click.command("histogram", epilog="Example: dotphase histogram --mechanism both --runs 1")
@click.option("--mechanism", type=click.Choice(("semantic", "positional", "both")),
              default="both", help="Input of queries and keys: symbols or positions.")  # fmt: skip
@click.option("--runs", type=POSITIVE, default=1, help="Runs of each mechanism.")
@click.option("--epochs", type=POSITIVE, default=None,
              help=f"Most epochs [default: {EPOCHS}, with --target {TARGET}].")  # fmt: skip
@click.option("--target", type=Number(above=0, at_most=1), default=None,
              help="Held-out accuracy at which a run stops.")  # fmt: skip
@click.option("--sequence", "sequences", multiple=True, metavar="BBCCDDBBBB",
              help="Sequence whose attention is drawn and printed; may be repeated.")  # fmt: skip
@click.option("--release", is_flag=True,
              help="Then release the constraint and continue training by SGD.")  # fmt: skip
@click.option("--release-epochs", type=POSITIVE, default=100,
              help="Epochs after the release.")  # fmt: skip
@click.option("--landscape", is_flag=True, help="Loss between the two solutions.")
@click.option("--emergence", type=DistinctValues(Integer(1)), default=None, metavar="N,N,...",
              help="Also train free networks on these numbers of sequences.")  # fmt: skip
@click.option("--emergence-steps", type=POSITIVE, default=10_000,
              help="Optimizer steps of the free networks.")  # fmt: skip
@click.option("--samples", type=Integer(10), default=50_000,
              help="Sequences drawn; 70% of them are for training.")  # fmt: skip
@seed_option
@click.option("--out", default="histogram", metavar="DIR",
              help="Folder for results; an interrupted run is resumed from it.")  # fmt: skip
@click.option("--weights", default=None, metavar="DIR",
              help="Folder for the first trained network of each mechanism.")  # fmt: skip
@json_option
def command(
    mechanism: str,
    runs: int,
    epochs: int | None,
    target: float | None,
    sequences: tuple[str, ...],
    release: bool,
    release_epochs: int,
    landscape: bool,
    emergence: list[int] | None,
    emergence_steps: int,
    samples: int,
    seed: int,
    out: str,
    weights: str | None,
    as_json: bool,
) -> int:
    """Train transformers to count how often each token of a sequence occurs in it.

    Their attention depends on positions alone, or on symbols alone. Writes results (histogram.nc)
    and figures into the folder. The same command resumes an interrupted run.
    """
    from dotphase.storage.paths import check_folder

    if epochs is None:
        epochs, target = EPOCHS, TARGET if target is None else target
    task, texts = histogram.Task(samples=samples), sequences or SEQUENCES
    for text in texts:
        histogram.parse(text, task.symbols, task.length, "--sequence")
    folder = check_folder("--out", out)
    weights_folder = None if weights is None else check_folder("--weights", weights)

    from dotphase.cli.options import prepare_jax

    prepare_jax()
    from dotphase.histogram.experiment import RELEASE, TRAINING

    try:
        result, interrupted = _train(
            folder, mechanism, runs, seed=seed, epochs=epochs, target=target, release=release,
            release_epochs=release_epochs, landscape=landscape, task=task,
        )  # fmt: skip
    except FloatingPointError as error:
        click.echo(f"dotphase: {error}", err=True)
        return 3
    free = None
    if emergence and not interrupted:
        free = _train_free(emergence, runs, emergence_steps, seed=seed, task=task)
        interrupted = free is None
    files = _write(result, free, texts, folder, weights_folder)
    for checkpoint in () if interrupted else (TRAINING, RELEASE):
        (folder / checkpoint).unlink(missing_ok=True)
    _print(result, free, texts, files, as_json)
    if interrupted:
        done = int(result.trained.epochs.max())
        click.echo(f"dotphase: interrupted after {done} epochs; the same command resumes", err=True)
        return 130
    return 0


def _train(
    folder: Path, mechanism: str, runs: int, **settings: Any
) -> tuple[histogram.Experiment, bool]:
    """Train with checkpoints in a folder; return the result, and True if interrupted."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with progress_bar(f"{mechanism}, {runs} runs each: epochs", settings["epochs"]) as bar:
            options = {"checkpoint": folder, "progress": bar, **settings}
            return histogram.run(mechanism, runs, **options), False
    except dp.Interrupted as stop:
        return stop.finished, True  # type: ignore[return-value]
    except ValueError:
        if is_new and not any(folder.iterdir()):
            folder.rmdir()
        raise


def _train_free(
    sizes: list[int], runs: int, steps: int, **settings: Any
) -> histogram.Emergence | None:
    """Train free networks on several numbers of sequences; return None if interrupted."""
    try:
        with progress_bar("free networks: sizes", total=len(sizes)) as bar:
            return histogram.emergence(sizes, runs, steps=steps, progress=bar, **settings)
    except KeyboardInterrupt:
        return None


def _write(
    result: histogram.Experiment,
    free: histogram.Emergence | None,
    texts: tuple[str, ...],
    folder: Path,
    weights: Path | None,
) -> dict[str, str]:
    """Write results and figures; return their paths by name."""
    networks = {name: result.network(name) for name in result.mechanisms}
    result.save(folder / "histogram.nc")
    dp.plot.histogram_attention(networks, texts, folder / "attention.png")
    dp.plot.histogram_curves(result, folder / "curves.png")
    names = {"results": "histogram.nc", "attention": "attention.png", "curves": "curves.png"}
    if result.released is not None:
        dp.plot.histogram_distances(result, folder / "distances.png")
        names["distances"] = "distances.png"
    if result.landscape is not None:
        dp.plot.histogram_landscape(result.landscape, folder / "landscape.png")
        names["landscape"] = "landscape.png"
    if free is not None:
        free.save(folder / "emergence.nc")
        dp.plot.histogram_emergence(free, folder / "emergence.png")
        names |= {"emergence_results": "emergence.nc", "emergence": "emergence.png"}
    files = {name: str(folder / file) for name, file in names.items()}
    if weights is not None:
        weights.mkdir(exist_ok=True)
        for name, network in networks.items():
            files[f"weights_{name}"] = str(histogram.save_network(network, weights / f"{name}.npz"))
    return files


def _print(
    result: histogram.Experiment,
    free: histogram.Emergence | None,
    texts: tuple[str, ...],
    files: dict[str, str],
    as_json: bool,
) -> None:
    """Print the results, and the counts and the attention of each network and sequence."""
    attention, predict = histogram.attention, histogram.predict
    cases = [(name, result.network(name), text) for name in result.mechanisms for text in texts]
    if not as_json:
        click.echo(str(result))
        if free is not None:
            click.echo(str(free))
        for name, network, text in cases:
            counts = "".join(f"{number:>3d}" for number in predict(network, text))
            click.echo(f"{name:>10s}  {text} counts{counts}")
        click.echo(f"{result.trained.seconds_per_epoch:.2f} s per epoch of all runs, "
                   f"{result.seconds:.0f} s in total")  # fmt: skip
        for name, path in files.items():
            click.echo(f"{name}: {path}")
        return
    values = result.to_dict()
    values["sequences"] = [
        {"sequence": text, "mechanism": name, "counts": predict(network, text),
         "attention": attention(network, text)}
        for name, network, text in cases
    ]  # fmt: skip
    if free is not None:
        values["emergence"] = free.to_dict()
    print_json({**values, "files": files})
