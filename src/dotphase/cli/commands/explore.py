"""`dotphase explore`: the interactive explorer in the browser."""

import click

from dotphase.cli.options import model_reference_options
from dotphase.config.parameters import Integer


@click.command("explore", epilog="Example: dotphase explore --model my_models.py:three_tokens")
@click.option("--port", type=Integer(0, 65535), default=0,
              help="Port to listen on; 0 for a free one.")  # fmt: skip
@click.option("--host", default="127.0.0.1", metavar="ADDRESS",
              help="Address to listen on; any other is open to other machines.")  # fmt: skip
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@model_reference_options
def command(
    port: int, host: str, no_browser: bool, reference: str | None, settings: tuple[str, ...]
) -> int:
    """Interactive page with the phase diagram, both branches, training and attention.

    It needs no internet. Ctrl-C ends it. With --model it shows another model than the paper's: its
    parameters are sliders, and --set gives their initial values.
    """
    from dotphase.cli.options import prepare_jax
    from dotphase.explorer.server import Server, plotly_script

    plotly_script()  # report a missing script before any slow work
    prepare_jax()
    from dotphase.explorer.point import initial_point
    from dotphase.explorer.routes import Explorer

    explorer = Explorer(initial_point(reference, settings))
    try:
        with Server(host, port, explorer) as server:
            click.echo(f"dotphase explorer at {server.address} (Ctrl-C ends it)")
            if not server.private:
                click.echo("dotphase: other machines can reach this page", err=True)
            explorer.warm_up()
            if not no_browser:
                import webbrowser

                webbrowser.open(server.address)
            server.serve_forever()
    except KeyboardInterrupt:
        # Workers may be compiling for long and have nothing to lose: end the process at once.
        explorer.processes.close()
        raise
    except BaseException:
        explorer.close()
        raise
    return 0
