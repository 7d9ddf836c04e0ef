"""Which generated quantities are random, as Stan programs are written."""

import pytest

from quenched.frontends.stan_randomness import random_quantities

NAMES = {"log_lik", "y_rep", "mean_rep", "twice"}
BOTH = """
  for (n in 1:N) {
    real m = a + b * x[n];
    log_lik[n] = normal_lpdf(y[n] | m, sigma);
    y_rep[n] = normal_rng(m, sigma);
  }
"""


@pytest.mark.parametrize(
    ("body", "random"),
    [
        ("real twice = 2 * a;", set()),
        ("real twice = 2 * a; // not normal_rng(0, 1)", set()),
        ("/* y_rep = normal_rng(0, 1); */ real twice;", set()),
        (BOTH, {"y_rep"}),
        (BOTH + "real mean_rep = mean(y_rep);", {"y_rep", "mean_rep"}),
        ("real mean_rep; { vector[N] own = to_vector(normal_rng(mu, 1)); mean_rep = mean(own); }", {"mean_rep"}),
        ("vector<lower=0, upper=2>[N] y_rep = poisson_rng(rate);", {"y_rep"}),
        ("array[N, 2] real y_rep; y_rep[order[1], 2] += normal_rng (0, 1);", {"y_rep"}),
        ("real twice = a <= 1 ? 2 : 3; if (a == 1) y_rep = my_own_rng(a);", {"y_rep"}),
        ("if (uniform_rng(0, 1) > 0.5) { twice = 1; }", NAMES),
    ],
)
def test_random_quantities(body, random):
    code = f"parameters {{ real a; }} model {{ a ~ std_normal(); }}\ngenerated quantities {{ {body} }}"
    assert random_quantities(code, NAMES) == random


def test_a_program_without_generated_quantities():
    assert random_quantities("transformed data { real x = normal_rng(0, 1); }", []) == frozenset()
