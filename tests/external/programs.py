"""The eight schools in Stan, all constants kept; and a Stan program with every kind of support."""

import fcntl
import tempfile
from pathlib import Path


def compiled(code, data):
    """Built by PyStan, by one process at a time: its cache is no place for two that build the same program."""
    import stan

    from quenched.frontends.stan_models import compile_for_pystan

    with (Path(tempfile.gettempdir()) / "quenched-tests-stan.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        compile_for_pystan(code)
        return stan.build(code, data=data)


SCHOOLS = """
data { int<lower=0> J; vector[J] effects; vector<lower=0>[J] errors; }
parameters { real mu; real<lower=0> tau; vector[J] z; }
transformed parameters { vector[J] theta = mu + tau * z; }
model {
  target += normal_lpdf(mu | 0, 5) + cauchy_lpdf(tau | 0, 5) + log(2);
  target += std_normal_lpdf(z) + normal_lpdf(effects | theta, errors);
}
generated quantities {
  vector[J] log_lik;
  for (j in 1:J) log_lik[j] = normal_lpdf(effects[j] | theta[j], errors[j]);
}
"""

SUPPORTS = """
data { int N; array[N] vector[3] rows; }
parameters {
  simplex[4] parts;
  ordered[3] cuts;
  cholesky_factor_corr[3] factor;
  vector<lower=0>[3] scale;
  real<lower=0, upper=2> below;
  real<lower=0, upper=below> dynamic;
  real<upper=1> capped;
  array[2] vector[3] nested;
  matrix[2, 3] table;
}
model {
  cuts ~ std_normal();
  factor ~ lkj_corr_cholesky(2);
  scale ~ normal(0, 2);
  below ~ normal(1, 1);
  capped ~ std_normal();
  for (i in 1:2) for (j in 1:3) { nested[i, j] ~ normal(10 * i + j, 0.1); table[i, j] ~ normal(10 * i + j, 0.1); }
  rows ~ multi_normal_cholesky(rep_vector(0, 3), diag_pre_multiply(scale, factor));
}
generated quantities { real replicate = normal_rng(below, 1); real twice = 2 * below; }
"""
