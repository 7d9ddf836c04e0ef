"""Principal components of data with wild entries: another noise is another argument (paper, Sec. 3.5).

    pip install "quenched[sklearn]"
    python examples/robust_ppca.py

Rows near a plane; one entry in five is replaced by nonsense. Each model reconstructs rows that it has not seen, and is
judged by the clean ones.
"""

import jax.numpy as jnp
import numpy as np

from quenched.models import PPCA, CauchyPPCA

random = np.random.default_rng(0)
loadings = random.standard_normal((50, 2)) * [3.0, 1.5]
clean = random.standard_normal((120, 2)) @ loadings.T + 10.0 + 0.3 * random.standard_normal((120, 50))
wild = np.where(random.uniform(size=clean.shape) < 0.2, random.uniform(-40.0, 60.0, clean.shape), clean)


def logistic(residual):  # a noise of one's own: any log density of the residual, in JAX
    return -residual - 2.0 * jnp.logaddexp(0.0, -residual)


models = {
    "PPCA, closed form": PPCA(2),
    "gaussian": CauchyPPCA(2, noise="gaussian"),
    "cauchy": CauchyPPCA(2),
    "student_t": CauchyPPCA(2, noise="student_t"),
    "laplace": CauchyPPCA(2, noise="laplace"),
    "logistic, one's own": CauchyPPCA(2, noise=logistic),
}

if __name__ == "__main__":
    print("| noise | error of new rows | score of new rows, nats |\n|---|---|---|")
    for name, model in models.items():
        model.fit(wild[:80])
        rebuilt = model.inverse_transform(model.transform(wild[80:]))
        error = np.sum((rebuilt - clean[80:]) ** 2) / np.sum((clean[80:] - clean[:80].mean(axis=0)) ** 2)
        print(f"| {name} | {error:.4f} | {model.score(wild[80:]):.1f} |")
