"""Log densities and modules of PyTorch."""

import numpy as np
import pytest

import quenched as qd

torch = pytest.importorskip("torch")


class Line(torch.nn.Module):
    """A straight line with Gaussian noise: its posterior is known."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(2, 1)

    def forward(self, data):
        away = data["y"] - self.line(data["x"])[:, 0]
        return -0.5 * (away**2).sum() - 0.5 * sum((part**2).sum() for part in self.parameters())


def test_a_module_is_fitted_by_its_names():
    random = np.random.default_rng(0)
    x = random.standard_normal((30, 2))
    y = x @ [1.0, -2.0] + 0.5 + random.standard_normal(30)
    module = Line()
    before = module.line.weight.detach().clone()
    model = qd.from_torch(module, data={"x": torch.tensor(x), "y": y})
    assert model.target.function.together
    fit = qd.fit(model, progress=False)
    design = np.column_stack([np.ones(30), x])
    precision = design.T @ design + np.eye(3)
    exact = np.linalg.solve(precision, design.T @ y)
    np.testing.assert_allclose(np.concatenate([fit.mean["line.bias"], fit.mean["line.weight"][0]]), exact, atol=1e-6)
    np.testing.assert_allclose(fit.covariance, np.linalg.inv(precision), atol=1e-6)
    assert torch.equal(before, module.line.weight)  # it is copied
    with pytest.raises(ValueError, match=r"from_torch\(module\)"):
        qd.fit(module)


def test_what_cannot_be_batched_is_evaluated_in_turn():
    def branches(w):
        return -0.5 * (w**2).sum() if w.detach()[0].item() < 1e9 else w.sum()

    model = qd.from_torch(branches, torch.ones(3))
    assert not model.target.function.together
    np.testing.assert_allclose(qd.fit(model, progress=False).bound, 1.5 * np.log(2 * np.pi), atol=1e-8)


def test_what_is_frozen_in_a_module_stays():
    module = Line()
    module.line.bias.requires_grad_(False)
    model = qd.from_torch(module, data={"x": np.eye(2), "y": np.ones(2)})
    fit = qd.fit(model, progress=False)
    assert list(fit.mean) == ["line.weight"]
    # One row each: (x x' + 1) w = y - bias.
    np.testing.assert_allclose(fit.mean["line.weight"], np.full((1, 2), (1.0 - float(module.line.bias)) / 2), atol=1e-6)


def test_a_bare_function_is_told_its_reader():
    with pytest.raises(ValueError, match=r"from_torch\(log_density, start\)"):
        qd.fit(lambda w: -0.5 * (torch.as_tensor(w) ** 2).sum(), np.zeros(3))
    with pytest.raises(ValueError, match=r"from_torch\(log_density, start\)"):
        qd.fit(lambda w: -torch.sum(w), np.zeros(3))
    with pytest.raises(ValueError, match=r"from_torch\(log_density, start\)"):
        qd.fit(lambda w: torch.distributions.Normal(0.0, 1.0).log_prob(w).sum(), np.zeros(3))


@pytest.mark.parametrize(
    ("given", "start", "says"),
    [
        (3, None, "is not callable"),
        (torch.sum, None, "start: is missing"),
        (lambda w: w, np.zeros(3), r"shape \(3,\); it must return a tensor with one number"),
        (lambda w: 1.0, np.zeros(3), "must return a tensor"),
        (lambda w: (torch.ones(3, 3) @ w).sum(), np.zeros(3), "double precision"),
        (lambda w: -(w.detach() ** 2).sum(), np.zeros(3), "gives no gradient: .* without detach"),
    ],
)
def test_misuse(given, start, says):
    with pytest.raises(ValueError, match=says):
        qd.from_torch(given, start)


def test_a_density_that_draws_at_random_and_a_wrong_derivative_are_named():
    class Halved(torch.autograd.Function):
        """A square whose derivative was written by hand, and wrongly."""

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * ctx.saved_tensors[0]

    start = torch.zeros(3, dtype=torch.float64)
    with pytest.raises(ValueError, match="at the same parameters"):
        qd.fit(qd.from_torch(lambda w: -((w - torch.randn(3, dtype=torch.float64)) ** 2).sum(), start), progress=False)
    with pytest.raises(ValueError, match=r"0\.5 times"):
        qd.fit(qd.from_torch(lambda w: -Halved.apply(w - 1.0).sum(), start), progress=False)
