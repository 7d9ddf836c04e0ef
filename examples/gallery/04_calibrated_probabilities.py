# needs: sklearn data

# %% [markdown]
# # Logistic regression with calibrated probabilities
#
# A classifier that says 0.9 should be right nine times in ten. Integrating over the posterior of the weights, instead of plugging
# in one value, keeps it from being too sure where it has seen little.
#
# Data: the banana set, partition 1 of Rätsch et al. (2001), Machine Learning 42, 287–320: 400 rows to learn from, 4,900 to test.

# %%
import numpy as np
from sklearn.linear_model import LogisticRegression as PlugIn
from sklearn.metrics import log_loss

from quenched.models import LogisticRegression
from quenched.paper import datasets
from quenched.plots import BLUE, GREY, ORANGE, dress, new_figure

part = datasets.partition("banana", 1)
centres = part.train_features[::5]


def bumps(inputs):
    """80 radial features."""
    return np.exp(-((inputs[:, None] - centres) ** 2).sum(axis=-1) / (2 * 0.5**2))


model = LogisticRegression().fit(bumps(part.train_features), part.train_labels)
fit = model.fit_
print(fit.verdict)

# %% [markdown]
# The prior precision was learned with the weights. scikit-learn's estimate with almost no penalty, and with its default, are
# the ones to compare with.

# %%
test, labels = bumps(part.test_features), part.test_labels
probabilities = {"integrated over the posterior": model.predict_proba(test)[:, 1]}
for name, penalty in (("plug-in, C = 1", 1.0), ("plug-in, C = 10,000", 1e4)):
    plug = PlugIn(C=penalty, max_iter=10_000).fit(bumps(part.train_features), part.train_labels)
    probabilities[name] = plug.predict_proba(test)[:, 1]
for name, values in probabilities.items():
    print(f"{name:30s} log loss {log_loss(labels, values):.3f}, error {np.mean((values > 0.5) != labels):.3f}")

# %%
axes = new_figure(5.0, 4.6).subplots()
dress(axes, xlabel="probability that was predicted", ylabel="share that was positive", title="4,900 test rows")
axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":")
for (name, values), (colour, dash) in zip(
    probabilities.items(), ((BLUE, "-"), (ORANGE, "--"), (GREY, "-.")), strict=True
):
    bins = np.clip((values * 10).astype(int), 0, 9)
    shares = [(values[bins == k].mean(), labels[bins == k].mean()) for k in range(10) if (bins == k).sum() > 20]
    axes.plot(*zip(*shares, strict=True), color=colour, ls=dash, marker="o", markersize=3.5, lw=1.5, label=name)
axes.legend(frameon=False, fontsize=8)
axes

# %% [markdown]
# Where the data end, the integrated probability returns to one half; that is what a posterior is for.

# %%
grid = np.stack(np.meshgrid(np.linspace(-4, 4, 120), np.linspace(-4, 4, 120)), axis=-1).reshape(-1, 2)
axes = new_figure(5.6, 4.6).subplots()
dress(axes, title="probability of the second class")
image = axes.imshow(
    model.predict_proba(bumps(grid))[:, 1].reshape(120, 120),
    extent=(-4, 4, -4, 4),
    origin="lower",
    cmap="cividis",
    vmin=0,
    vmax=1,
)
axes.figure.colorbar(image, ax=axes, shrink=0.8)
for value, mark in ((0, "o"), (1, "x")):
    rows = part.train_features[part.train_labels == value]
    axes.plot(*rows.T, mark, color="white" if value == 0 else "black", markersize=3, alpha=0.8)
axes

# %% [markdown]
# ## What the verdict was, and what was done
#
# The verdict is printed under the first cell. Nothing was done about it: what is asked of this fit is its predictions, and those
# are judged by test rows that it has not seen, in the table and in the diagram.
