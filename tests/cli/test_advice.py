"""What a verdict advises can be typed where it is read."""

import pytest

from quenched.cli.advice import as_commands
from quenched.results import Status


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ('Try family="warped"; if', "Try --family warped; if"),
        ("Use more draws (now 64): draws=256.", "Use more draws (now 64): --draws 256."),
        (
            "Resume with qd.fit(log_density, fit, data=data), or try starts=4.",
            "Resume with --resume, or try --starts 4.",
        ),
        ("Resume with qd.fit(log_density, fit).", "Resume with --resume."),
        (Status.MAX_SECONDS.message, "Stopped at max_seconds before converging; resume with --resume."),
        (Status.INTERRUPTED.message, "Interrupted; what was reached is kept. Resume with --resume."),
        ("Try family=qd.LowRank(40), or", "Try family=qd.LowRank(40) in Python, or"),
        (
            "Try qd.nested(log_density, start, outer=['tau'], data=data).",
            "Try qd.nested(log_density, start, outer=['tau'], data=data) in Python.",
        ),
        (
            "MCMC from fit.nuts_start().",
            "MCMC from quenched.load(FILE).attach(log_density, data).nuts_start() in Python.",
        ),
        ("Use it as it is.", "Use it as it is."),
    ],
)
def test_as_options_of_the_command_line(python, command):
    assert as_commands(python) == command
