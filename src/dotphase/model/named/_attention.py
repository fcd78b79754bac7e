"""Parameters of the models that vary the paper's attention."""

from collections.abc import Mapping

from dotphase.config.parameters import Integer, Number, Parameter, table


def parameters(*extra: Parameter, length: int = 2, sigma: float = 0.5) -> Mapping[str, Parameter]:
    """Table of the positional weight, extra parameters, length, scale and ridge."""
    return table(
        Parameter("omega", Number(at_least=0, at_most=1), 0.3, "Positional weight of the teacher."),
        *extra,
        Parameter("length", Integer(2), length, "Tokens in a sentence."),
        Parameter("sigma", Number(above=0), sigma, "Standard deviation of the tokens."),
        Parameter("ridge", Number(above=0), 0.01, "Penalty lambda."),
    )
