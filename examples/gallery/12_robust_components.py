# needs: sklearn

# %% [markdown]
# # Denoising with Cauchy PPCA
#
# Images of handwritten digits, one pixel in six replaced by nonsense. Principal components with normal noise smear the nonsense over the whole
# image; with Cauchy noise they leave it out.
#
# Data: the digits that come with scikit-learn (Alpaydin and Kaynak 1998, UCI), the zeros alone.

# %%
import numpy as np
from sklearn.datasets import load_digits

from quenched.models import PPCA, CauchyPPCA
from quenched.plots import GREY, new_figure

digits = load_digits()
clean = digits.data[digits.target == 0]
random = np.random.default_rng(5)
wild = random.uniform(size=clean.shape) < 1 / 6
spoilt = np.where(wild, random.uniform(0, 16, clean.shape), clean)
train, test = slice(0, 120), slice(120, None)

few = CauchyPPCA(4, draws=8).fit(spoilt[train])
print(few.fit_.verdict)

# %% [markdown]
# Eight draws for four latent variables of each row were too few, on purpose: the posterior follows its draws. With 64 it does not.

# %%
models = {"PPCA": PPCA(4).fit(spoilt[train]), "Cauchy PPCA": CauchyPPCA(4, draws=64).fit(spoilt[train])}
rebuilt = {name: model.inverse_transform(model.transform(spoilt[test])) for name, model in models.items()}
for name, images in rebuilt.items():
    print(f"{name:12s} error per pixel {np.sqrt(np.mean((images - clean[test]) ** 2)):.2f} of 16")
fit = models["Cauchy PPCA"].fit_
print(fit.verdict)

# %%
figure = new_figure(8.0, 4.6)
shown = {"clean": clean[test], "spoilt": spoilt[test], **rebuilt}
grid = figure.subplots(4, 8)
for row, (name, images) in zip(grid, shown.items(), strict=True):
    for axes, image in zip(row, images, strict=False):
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        axes.set(xticks=[], yticks=[])
    row[0].set_ylabel(name, fontsize=9, color=GREY)
figure

# %% [markdown]
# ## What the verdict was, and what was done
#
# The first fit overfitted its eight draws, as its verdict says: more draws were the remedy, and the second verdict is printed with
# the errors. It is about the posterior of the latent variables of the 120 training rows, given the components, which were raised on
# the bound with them. What is used are reconstructions, and those are judged on rows that were not trained on.
