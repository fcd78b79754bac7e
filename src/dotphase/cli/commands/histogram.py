"""`dotphase histogram`: a small transformer that counts, in one of two ways."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dotphase.cli.options import COUNT, Checked, Several, json_option, seed_option
from dotphase.cli.output import Advance, print_json, progress_bar
from dotphase.config.parameters import Integer, Number

if TYPE_CHECKING:
    from dotphase.histogram import Emergence, Experiment

#: Epochs, and where to stop before if they are not asked for.
EPOCHS, TARGET = 200, 0.998
#: Sequences whose attention is drawn, unless others are asked for.
SEQUENCES = ("BBCCDDBBBB", "ABCDEFGHIJ", "AAAAABBBCC")


@click.command("histogram", epilog="Example: dotphase histogram --mechanism both --runs 1")
@click.option("--mechanism", type=click.Choice(("semantic", "positional", "both")),
              default="both", help="What query and key may read.")  # fmt: skip
@click.option("--runs", type=COUNT, default=1, help="Runs of each kind.")
@click.option("--epochs", type=COUNT, default=None,
              help=f"Most epochs [default: {EPOCHS}, with --target {TARGET}].")  # fmt: skip
@click.option("--target", type=Checked(Number(above=0, at_most=1)), default=None,
              help="Held-out accuracy at which a run stops.")  # fmt: skip
@click.option("--sequence", "sequences", multiple=True, metavar="BBCCDDBBBB",
              help="Sequence whose attention is drawn and printed; may be repeated.")  # fmt: skip
@click.option("--release", is_flag=True,
              help="Then lift the constraint and train on by SGD.")  # fmt: skip
@click.option("--release-epochs", type=COUNT, default=100,
              help="Epochs after the release.")  # fmt: skip
@click.option("--landscape", is_flag=True, help="Loss between the two solutions.")
@click.option("--emergence", type=Checked(Several(Integer(1))), default=None, metavar="N,N,...",
              help="Also: what do free networks find on so many training sequences?")  # fmt: skip
@click.option("--emergence-steps", type=COUNT, default=10_000,
              help="Optimizer steps of the free networks.")  # fmt: skip
@click.option("--samples", type=Checked(Integer(10)), default=50_000,
              help="Sequences drawn; 70% are trained on.")  # fmt: skip
@seed_option
@click.option("--out", default="histogram", metavar="DIR",
              help="Folder for results; an interrupted run goes on from it.")  # fmt: skip
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

    Their attention is made to depend on positions alone, or on symbols alone. Writes results
    (histogram.npz) and figures into the folder. Killed and started again with the same options,
    it goes on where it was.
    """
    from dotphase.histogram.task import Task, parse

    if epochs is None:
        epochs, target = EPOCHS, TARGET if target is None else target
    task = Task(samples=samples)
    texts = sequences or SEQUENCES
    for text in texts:
        parse(text, task.symbols, task.length, "--sequence")
    from dotphase.storage.paths import check_folder

    folder = check_folder("--out", out)
    extra = None if weights is None else check_folder("--weights", weights)

    from dotphase.cli.options import prepare_jax

    prepare_jax()
    from dotphase.errors import Interrupted
    from dotphase.histogram import emergence as study_free
    from dotphase.histogram import run
    from dotphase.histogram.mechanisms import RELEASE, TRAINING

    interrupted, free = False, None
    total = epochs + (release_epochs if release else 0)
    made = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        with progress_bar(f"{mechanism}, {runs} runs each: epochs", total=total) as advance:
            result = run(
                mechanism, runs, epochs, seed=seed, target=target, release=release,
                release_epochs=release_epochs, landscape=landscape, task=task, checkpoint=folder,
                on_epoch=_Follow(advance),
            )  # fmt: skip
    except Interrupted as stop:
        interrupted, result = True, stop.finished  # type: ignore[assignment]
    except FloatingPointError as error:
        click.echo(f"dotphase: {error}", err=True)
        return 3
    except ValueError:
        if made and not any(folder.iterdir()):
            folder.rmdir()
        raise
    if emergence and not interrupted:
        try:
            with progress_bar("free networks: sizes", total=len(emergence)) as advance:
                free = study_free(
                    emergence, runs, emergence_steps, seed=seed, task=task,
                    on_size=lambda n: advance(),
                )  # fmt: skip
        except KeyboardInterrupt:
            interrupted = True
    files = _write(result, free, texts, folder, extra)
    for checkpoint in () if interrupted else (TRAINING, RELEASE):
        (folder / checkpoint).unlink(missing_ok=True)
    _show(result, free, texts, files, as_json)
    if interrupted:
        done = int(result.trained.epochs.max())
        click.echo(f"dotphase: interrupted after {done} epochs; the same command goes on", err=True)
        return 130
    return 0


class _Follow:
    """Tells a progress bar how many epochs were done, also those that a checkpoint had."""

    def __init__(self, advance: Advance) -> None:
        self.advance = advance
        self.seen: dict[str, int] = {}

    def __call__(self, stage: str, done: int, row: Any) -> None:
        self.advance(done - self.seen.get(stage, 0))
        self.seen[stage] = done


def _write(
    result: Experiment,
    free: Emergence | None,
    texts: tuple[str, ...],
    folder: Path,
    weights: Path | None,
) -> dict[str, str]:
    """Results and figures; their paths by name."""
    from dotphase import plot
    from dotphase.histogram import save_network

    networks = {name: result.network(name) for name in result.mechanisms}
    result.save(folder / "histogram.npz")
    plot.histogram_attention(networks, texts, folder / "attention.png")
    plot.histogram_curves(result, folder / "curves.png")
    names = {"results": "histogram.npz", "attention": "attention.png", "curves": "curves.png"}
    if result.released is not None:
        plot.histogram_distances(result, folder / "distances.png")
        names["distances"] = "distances.png"
    if result.landscape is not None:
        plot.histogram_landscape(result.landscape, folder / "landscape.png")
        names["landscape"] = "landscape.png"
    if free is not None:
        free.save(folder / "emergence.npz")
        plot.histogram_emergence(free, folder / "emergence.png")
        names |= {"emergence_results": "emergence.npz", "emergence": "emergence.png"}
    files = {name: str(folder / file) for name, file in names.items()}
    if weights is not None:
        weights.mkdir(exist_ok=True)
        for name, network in networks.items():
            files[f"weights_{name}"] = str(save_network(network, weights / f"{name}.npz"))
    return files


def _show(
    result: Experiment,
    free: Emergence | None,
    texts: tuple[str, ...],
    files: dict[str, str],
    as_json: bool,
) -> None:
    from dotphase.histogram import attention, predict

    asked = [(name, result.network(name), text) for name in result.mechanisms for text in texts]
    if not as_json:
        click.echo(str(result))
        if free is not None:
            click.echo(str(free))
        for name, network, text in asked:
            counts = "".join(f"{number:>3d}" for number in predict(network, text))
            click.echo(f"{name:>10s}  {text} counts{counts}")
        click.echo(f"{result.trained.seconds_per_epoch:.2f} s per epoch of all runs, "
                   f"{result.seconds:.0f} s in all")  # fmt: skip
        for name, path in files.items():
            click.echo(f"{name}: {path}")
        return
    shown = result.to_dict()
    shown["sequences"] = [
        {"sequence": text, "mechanism": name, "counts": predict(network, text),
         "attention": attention(network, text)}
        for name, network, text in asked
    ]  # fmt: skip
    if free is not None:
        shown["emergence"] = free.to_dict()
    print_json({**shown, "files": files})
