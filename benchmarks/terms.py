"""Sums of terms: fits of models with structure, against the dense family where that is possible, and the algebra alone.

    python benchmarks/terms.py algebra
    python benchmarks/terms.py item_response:100:20 full/item_response:100:20
    python benchmarks/terms.py poisson:1000 shared:1000 volatility:1000 lattice:20
    python benchmarks/terms.py few_counts:1000 skewed/few_counts:1000 skewed/poisson:1000:2
    python benchmarks/terms.py insteval insteval_gaussian banana softmax paper_softmax

Each line says the bound, the check on fresh draws, rounds, seconds cold and warm (by the clock, and of all processors together,
which other work on the machine changes less), and the memory of the process.
`QUENCHED_DATA` points to the folder with `mixed/InstEval.csv` and the paper's data for the last five.
"""

import csv
import os
import resource
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.scipy.stats import norm

import quenched as qd
from quenched.families import factor, make_pattern


def item_response(people, items):
    random = np.random.default_rng([5, people])
    ability, difficulty = random.standard_normal(people), random.standard_normal(items)
    slope = np.exp(0.3 * random.standard_normal(items))
    i, j = np.divmod(np.arange(people * items), items)
    chance = 1.0 / (1.0 + np.exp(-slope[j] * (ability[i] - difficulty[j])))
    answers = (random.random(people * items) < chance).astype(float)

    def answer(seen, row):
        score = jnp.exp(seen["log_slope"]) * (seen["ability"] - seen["difficulty"])
        return row * score - jnp.logaddexp(0.0, score)

    priors = lambda seen: norm.logpdf(seen["difficulty"]) + norm.logpdf(seen["log_slope"], 0.0, 0.5)
    target = qd.sum_of(
        qd.each(answer, answers, sees={"ability": i, "difficulty": j, "log_slope": j}),
        qd.each(lambda seen: norm.logpdf(seen["ability"]), sees={"ability": qd.each_entry}),
        qd.each(priors, sees={"difficulty": qd.each_entry, "log_slope": qd.each_entry}),
    )
    return target, {"ability": np.zeros(people), "difficulty": np.zeros(items), "log_slope": np.zeros(items)}, None


def poisson(groups, each=10):
    random = np.random.default_rng([1, groups])
    n, group = groups * each, np.repeat(np.arange(groups), each)
    design = np.column_stack([np.ones(n), random.standard_normal((n, 3))])
    rate = design @ np.array([0.5, 0.3, -0.2, 0.1]) + 0.7 * random.standard_normal(groups)[group]
    counts = random.poisson(np.exp(rate)).astype(float)

    def count(seen, row):
        score = seen["beta"] + seen["u"]
        return row * score - jnp.exp(score) - gammaln(row + 1.0)

    prior = lambda seen: norm.logpdf(seen["log_sd"]) + jnp.sum(norm.logpdf(seen["beta"], 0.0, 2.0))
    effect = lambda seen: norm.logpdf(seen["u"], 0.0, jnp.exp(seen["log_sd"]))
    target = qd.sum_of(
        qd.each(count, counts, sees={"beta": qd.dot(design), "u": group}),
        qd.each(effect, sees={"u": qd.each_entry, "log_sd": qd.whole}),
        qd.each(prior, sees={"beta": qd.whole, "log_sd": qd.whole}),
    )
    return target, {"beta": np.zeros(4), "log_sd": 0.0, "u": np.zeros(groups)}, None


def few_counts(groups):
    """Two counts for each group and a prior that is known; prints the log evidence, by quadrature for each group."""
    random = np.random.default_rng(0)
    rate, group = -0.5 + 0.7 * random.standard_normal(groups), np.repeat(np.arange(groups), 2)
    counts = random.poisson(np.exp(rate[group])).astype(float)
    grid = np.linspace(-7.0, 5.0, 4001)
    prior = -0.5 * ((grid + 0.5) / 0.9) ** 2 - np.log(0.9 * np.sqrt(2.0 * np.pi))
    values = np.bincount(group, counts)[:, None] * grid - 2.0 * np.exp(grid) + prior
    print(f"log evidence {np.log(np.exp(values).sum(axis=1) * (grid[1] - grid[0])).sum():.3f}", flush=True)
    target = qd.sum_of(
        qd.each(lambda seen, row: row * seen["u"] - jnp.exp(seen["u"]), counts, sees={"u": group}),
        qd.each(lambda seen: norm.logpdf(seen["u"], -0.5, 0.9), sees={"u": qd.each_entry}),
    )
    return target, {"u": np.zeros(groups)}, None


def volatility(length):
    random = np.random.default_rng([2, length])
    states = np.empty(length)
    states[0] = -1.0 + 0.3 / np.sqrt(1 - 0.95**2) * random.standard_normal()
    for t in range(1, length):
        states[t] = -1.0 + 0.95 * (states[t - 1] + 1.0) + 0.3 * random.standard_normal()
    returns = np.exp(states / 2.0) * random.standard_normal(length)
    shared = {"level": qd.whole, "persistence": qd.whole, "noise": qd.whole}

    def step(seen):
        mean = seen["level"] + seen["persistence"] * (seen["h"][0] - seen["level"])
        return norm.logpdf(seen["h"][1], mean, seen["noise"])

    def first(seen):
        return norm.logpdf(seen["h"], seen["level"], seen["noise"] / jnp.sqrt(1.0 - seen["persistence"] ** 2))

    def prior(seen):
        log_noise = jnp.log(seen["noise"])
        of_persistence = 19.0 * jnp.log1p(seen["persistence"]) + 0.5 * jnp.log1p(-seen["persistence"])
        return norm.logpdf(seen["level"], 0.0, 5.0) + norm.logpdf(log_noise, -1.0, 1.0) - log_noise + of_persistence

    link = np.arange(length - 1)
    observed = lambda seen, row: norm.logpdf(row, 0.0, jnp.exp(seen["h"] / 2.0))
    target = qd.sum_of(
        qd.each(observed, returns, sees={"h": qd.each_entry}),
        qd.each(step, sees={"h": (link, link + 1), **shared}),
        qd.each(first, sees={"h": [0], **shared}),
        qd.each(prior, sees=shared),
    )
    start = {"h": np.zeros(length), "level": 0.0, "persistence": 0.8, "noise": 0.5}
    return target, start, {"persistence": qd.interval(-1.0, 1.0), "noise": qd.positive}


def lattice(side):
    random = np.random.default_rng([3, side])
    places = np.arange(side * side).reshape(side, side)
    one = np.concatenate([places[:-1].ravel(), places[:, :-1].ravel()])
    other = np.concatenate([places[1:].ravel(), places[:, 1:].ravel()])
    x, y = np.meshgrid(np.linspace(0, 3, side), np.linspace(0, 3, side))
    field = np.sin(x) * np.cos(y) + 0.3 * random.standard_normal((side, side))
    counts = random.poisson(np.exp(1.0 + 0.7 * field.ravel())).astype(float)

    def count(seen, row):
        score = seen["x"] + seen["level"]
        return row * score - jnp.exp(score) - gammaln(row + 1.0)

    edge = lambda seen: -0.5 * jnp.exp(seen["log_precision"]) * (seen["x"][0] - seen["x"][1]) ** 2
    site = lambda seen: -0.05 * seen["x"] ** 2 + 0.5 * seen["log_precision"]
    prior = lambda seen: norm.logpdf(seen["level"], 0.0, 3.0) + norm.logpdf(seen["log_precision"], 0.0, 2.0)
    target = qd.sum_of(
        qd.each(count, counts, sees={"x": qd.each_entry, "level": qd.whole}),
        qd.each(edge, sees={"x": (one, other), "log_precision": qd.whole}),
        qd.each(site, sees={"x": qd.each_entry, "log_precision": qd.whole}),
        qd.each(prior, sees={"level": qd.whole, "log_precision": qd.whole}),
    )
    return target, {"x": np.zeros(side * side), "level": 0.0, "log_precision": 0.0}, None


def insteval():
    with open(os.path.join(os.environ["QUENCHED_DATA"], "mixed", "InstEval.csv")) as file:
        rows = list(csv.DictReader(file))
    factors = {name: np.unique([row[name] for row in rows], return_inverse=True) for name in ("s", "d", "dept")}
    good = np.array([float(row["y"]) >= 4 for row in rows], float)
    design = np.column_stack([np.ones(len(rows)), [float(row["service"]) for row in rows]])

    def rating(seen, row):
        score = seen["beta"] + seen["s"] + seen["d"] + seen["dept"]
        return row * score - jnp.logaddexp(0.0, score)

    def effect(name):
        function = lambda seen: norm.logpdf(seen[name], 0.0, jnp.exp(seen[f"log_sd_{name}"]))
        return qd.each(function, sees={name: qd.each_entry, f"log_sd_{name}": qd.whole})

    logs = {f"log_sd_{name}": qd.whole for name in factors}
    prior = lambda seen: jnp.sum(norm.logpdf(seen["beta"], 0.0, 10.0)) + sum(norm.logpdf(seen[name]) for name in logs)
    index = {name: places for name, (_, places) in factors.items()}
    target = qd.sum_of(
        qd.each(rating, good, sees={"beta": qd.dot(design), **index}),
        *map(effect, factors),
        qd.each(prior, sees={"beta": qd.whole, **logs}),
    )
    start = {name: np.zeros(len(levels)) for name, (levels, _) in factors.items()}
    return target, {**start, "beta": np.zeros(2), **dict.fromkeys(logs, -0.5)}, None


def insteval_gaussian():
    """The same ratings as numbers; what is not an effect is raised, so that the bound is the log likelihood at its maximum."""
    with open(os.path.join(os.environ["QUENCHED_DATA"], "mixed", "InstEval.csv")) as file:
        rows = list(csv.DictReader(file))
    index = {name: np.unique([row[name] for row in rows], return_inverse=True)[1] for name in ("s", "d", "dept")}
    ratings = {"y": np.array([float(row["y"]) for row in rows]), "x": np.array([float(row["service"]) for row in rows])}

    def rating(seen, row, *, hyper):
        mean = hyper["beta"][0] + hyper["beta"][1] * row["x"] + seen["s"] + seen["d"] + seen["dept"]
        return norm.logpdf(row["y"], mean, jnp.exp(hyper["log_noise"]))

    def effect(name):
        function = lambda seen, *, hyper: norm.logpdf(seen[name], 0.0, jnp.exp(hyper[f"log_sd_{name}"]))
        return qd.each(function, sees={name: qd.each_entry})

    target = qd.sum_of(qd.each(rating, ratings, sees=index), *map(effect, index))
    hyper = {"beta": np.array([3.0, 0.0]), "log_noise": np.asarray(0.2)}
    hyper |= {f"log_sd_{name}": np.asarray(-1.0) for name in index}
    return target, {name: np.zeros(places.max() + 1) for name, places in index.items()}, None, hyper


def banana():
    """The paper's logistic regression with all 401 weights and a prior precision that is raised; and the bound by quadrature."""
    from quenched.paper.datasets import partition
    from quenched.paper.experiments.features import radial_basis
    from quenched.paper.rivals import best_gaussian

    part = partition("banana", 1)
    design = radial_basis(part.train_features, np.unique(part.train_features, axis=0), 0.5)
    labels = part.train_labels.astype(float)
    for _ in range(2):
        began, worked = time.perf_counter(), time.process_time()
        bound = best_gaussian(design, labels).bound
        seconds, work = time.perf_counter() - began, time.process_time() - worked
        print(f"banana by quadrature: bound {bound:.5f}, {seconds:.1f} s ({work:.1f} s of processors)", flush=True)
    target = qd.sum_of(
        qd.each(lambda seen, row: row * seen["w"] - jnp.logaddexp(0.0, seen["w"]), labels, sees={"w": qd.dot(design)}),
        qd.each(lambda seen, *, hyper: norm.logpdf(seen["w"], 0.0, jnp.exp(-0.5 * hyper)), sees={"w": qd.each_entry}),
    )
    return target, {"w": np.zeros(design.shape[1])}, None, np.asarray(0.0)


def softmax(name="vehicle"):
    """All classes of a data set of the paper by a linear predictor each, of standardised features, with unit priors."""
    from quenched.paper.datasets import load

    loaded = load(name)
    features, labels = loaded.features, loaded.labels
    features = (features - features.mean(axis=0)) / features.std(axis=0)
    design, one_hot = np.column_stack([np.ones(len(features)), features]), np.eye(labels.max() + 1)[labels]
    log_density = lambda seen, row: row @ seen["w"] - jax.nn.logsumexp(seen["w"])
    target = qd.sum_of(
        qd.each(log_density, one_hot, sees={"w": qd.dot(design)}),
        qd.each(lambda seen: jnp.sum(norm.logpdf(seen["w"])), sees={"w": qd.each_entry}),
    )
    return target, {"w": np.zeros((design.shape[1], one_hot.shape[1]))}, None


def paper_softmax(name="vehicle", fold=0):
    """A fold of the paper's softmax classification (Sec. 3.4) with its kernel, the prior precision raised."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.preprocessing import StandardScaler

    from quenched.paper.datasets import load
    from quenched.paper.experiments.features import kernel_features

    loaded = load(name)
    train, _ = list(StratifiedKFold(10, shuffle=True, random_state=0).split(loaded.features, loaded.labels))[fold]
    inputs = StandardScaler().fit_transform(loaded.features[train])
    design, one_hot = kernel_features("polynomial", inputs, inputs), np.eye(len(loaded.classes))[loaded.labels[train]]
    effect = lambda seen, *, hyper: jnp.sum(norm.logpdf(seen["w"], 0.0, jnp.exp(-0.5 * hyper)))
    target = qd.sum_of(
        qd.each(lambda seen, row: row @ seen["w"] - jax.nn.logsumexp(seen["w"]), one_hot, sees={"w": qd.dot(design)}),
        qd.each(effect, sees={"w": qd.each_entry}),
    )
    return target, {"w": np.zeros((design.shape[1], one_hot.shape[1]))}, None, np.asarray(0.0)


def algebra():
    """Factor, selected inverse and solve of the graphs alone."""
    random = np.random.default_rng(0)
    link, every = np.arange(19_999), np.arange(20_000)
    places = np.arange(10_000).reshape(100, 100)
    graphs = {
        "chain": (
            20_003,
            np.r_[link, every, every, every],
            np.r_[link + 1, 0 * every + 20_000, 0 * every + 20_001, 0 * every + 20_002],
        ),
        "groups": (100_005, np.repeat(np.arange(100_000), 5), 100_000 + np.tile(np.arange(5), 100_000)),
        "crossed": (4_100, np.repeat(np.arange(2_972), 25), 2_972 + random.integers(0, 1_128, 74_300)),
        "lattice": (
            10_000,
            np.r_[places[:-1].ravel(), places[:, :-1].ravel()],
            np.r_[places[1:].ravel(), places[:, 1:].ravel()],
        ),
    }
    for name, (dim, rows, columns) in graphs.items():
        hubs = {"chain": (20_000, 20_001, 20_002), "groups": tuple(range(100_000, 100_005))}.get(name, ())
        began = time.perf_counter()
        pattern = make_pattern(dim, rows, columns, hubs)
        times = [time.perf_counter() - began]
        values = np.zeros(pattern.size)
        values[pattern.places(pattern.rows, pattern.columns)] = 0.1
        values[pattern.diagonal] = 0.2 * np.bincount(np.r_[pattern.rows, pattern.columns], minlength=dim) + 1.0
        began = time.perf_counter()
        found = factor(pattern, values)
        assert found is not None
        times.append(time.perf_counter() - began)
        for ask in (lambda one: one.inverse, lambda one: one.solve(np.ones(one.pattern.dim))):
            began = time.perf_counter()
            ask(found)
            times.append(time.perf_counter() - began)
        shown = " ".join(f"{seconds:.3f}" for seconds in times)
        what = f"{dim} unknowns, {pattern.n_entries} entries, root {len(pattern.root)}"
        print(f"{name}: {what}; pattern, factor, inverse, solve {shown} s")


def measure(name, *sizes, family=None):
    target, start, transforms, *hyper = globals()[name](*sizes)
    options = {"transforms": transforms, "hyper": hyper[0] if hyper else None, "progress": False, "throw": False}
    options["family"] = family
    for when in ("cold", "warm"):
        began, worked = time.perf_counter(), time.process_time()
        fit = qd.fit(target, start, **options)
        seconds, work = time.perf_counter() - began, time.process_time() - worked
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{name}{sizes} {when}: {fit.posterior.dim} parameters, bound {fit.bound:.3f}, check {fit.check_bound:.3f} ± "
            f"{fit.check_error:.3f}, k-hat {fit.khat:.2f}, {fit.n_draws} draws, {fit.n_objective_evaluations} bounds, {fit.status}, {seconds:.1f} s "
            f"({work:.1f} s of processors), {memory:.1f} GB",
            flush=True,
        )


def shared(groups, draws=512):
    """What the groups of a Poisson mixed model share, with the draws that a fit takes and with many."""
    target, start, _ = poisson(groups)
    few, many = (qd.fit(target, start, draws=n, progress=False) for n in (None, draws))
    names = ["beta", "log_sd"]
    (mean, covariance), (other, others) = (fit.posterior.marginal(names) for fit in (few, many))
    away, wide = (mean - other) / np.sqrt(np.diag(others)), np.sqrt(np.diag(covariance) / np.diag(others))
    print(
        f"shared by {groups} groups, {few.n_draws} against {many.n_draws} draws: means within {np.abs(away).max():.4f} sds, "
        f"sds {wide.min():.4f} to {wide.max():.4f} times",
        flush=True,
    )


if __name__ == "__main__":
    families = {"skewed": qd.Sparse(warped=True), "full": "full", "": None}
    for word in sys.argv[1:] or ["algebra"]:
        family, _, rest = word.rpartition("/")
        asked, *numbers = rest.split(":")
        if asked in ("algebra", "shared"):
            globals()[asked](*map(int, numbers))
        else:
            measure(asked, *map(int, numbers), family=families[family])
