# %% [markdown]
# # A simulator without gradients
#
# An outbreak of influenza at a boarding school, simulated by somebody else's program: SciPy's `solve_ivp`, which JAX cannot look
# into. `qd.from_value` needs its value alone, and counts the calls.
#
# Data: boys in bed on 14 days (*Influenza in a boarding school*, British Medical Journal, 4 March 1978, p. 587); 763 boys.

# %%
import numpy as np
from scipy.integrate import solve_ivp
from scipy.stats import nbinom, norm

import quenched as qd
from quenched.plots import plot_marginals, plot_predictive

in_bed = np.array([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4])
boys, days = 763.0, np.arange(14.0)


def simulate(contacts, recovery):
    """Boys in bed by the equations of susceptible, infected and recovered, from one infected boy on day −1 onwards."""
    slope = lambda t, y: [-contacts * y[0] * y[1] / boys, contacts * y[0] * y[1] / boys - recovery * y[1]]
    solved = solve_ivp(slope, (0.0, 14.0), [boys - 1.0, 1.0], method="LSODA", t_eval=days + 1.0, rtol=1e-7, atol=1e-7)
    return np.maximum(solved.y[1], 1e-6)


def log_density(p):
    contacts, recovery, dispersion = np.exp(p["log_contacts"]), np.exp(p["log_recovery"]), np.exp(p["log_dispersion"])
    expected = simulate(contacts, recovery)
    prior = norm.logpdf(p["log_contacts"], 0.5, 0.7) + norm.logpdf(p["log_recovery"], -0.7, 0.7)
    prior += norm.logpdf(p["log_dispersion"], 2.0, 1.0)
    return prior + nbinom.logpmf(in_bed, dispersion, dispersion / (dispersion + expected)).sum()


start = {"log_contacts": 0.5, "log_recovery": -0.7, "log_dispersion": 2.0}
fit = qd.fit(qd.from_value(log_density), start)
print(fit)
print("\ncalls of the simulator:", fit.settings["calls"])

# %%
plot_marginals(fit)

# %%
samples = fit.sample(400)
random = np.random.default_rng(1)
replicated = []
for contacts, recovery, dispersion in zip(*(np.exp(samples[name]) for name in start), strict=True):
    expected = simulate(contacts, recovery)
    replicated.append(random.negative_binomial(dispersion, dispersion / (dispersion + expected)))
plot_predictive(np.array(replicated), in_bed, days, label="day")

# %% [markdown]
# ## What the verdict was, and what was done
#
# The verdict heads the summary: means and sds are trusted, far probabilities are not, since the dispersion is skewed. Nothing had to be
# done; but the check draws have been paid for, and their weights say at no further call of the simulator what the sds of the target are:

# %%
points, weights = fit.posterior.transform(fit.check_draws), fit.weights.weights
mean = weights @ points
sd = np.sqrt(weights @ (points - mean) ** 2)
for name, value in zip(fit.space.names(), sd, strict=True):
    print(f"{name:16s} sd of the fit {fit.sd[name]:.3f}, by weights {value:.3f}")

# %% [markdown]
# The basic reproduction number, contacts over recovery:

# %%
ratio = fit.of(lambda p: np.e ** (p["log_contacts"] - p["log_recovery"]))
print(f"{ratio.mean:.2f} ± {ratio.sd:.2f}")
