"""Sums of terms against NUTS (NumPyro), which is whitened by the fit and begins at it.

    python benchmarks/terms_nuts.py insteval --warmup 300 --samples 1500 --save nuts.npz
    python benchmarks/terms_nuts.py volatility:1000 lattice:20

For each leaf it prints how many posterior sds the means of the fit are away from those of NUTS, and its sds as multiples of
theirs, on the real line and in natural units; with the effective samples behind them. `QUENCHED_DATA` as for `terms.py`.
"""

import argparse
import time

import jax
import numpy as np
import terms
from numpyro.diagnostics import effective_sample_size
from numpyro.infer.hmc import hmc

import quenched as qd


def whitening(fit):
    """The order of the coordinates, small leaves first, and the Cholesky factor of their covariance in it.

    What all rows share then has coordinates of its own, whose sds NUTS may find to be other than ours.
    """
    sizes = fit.space.sizes
    of_leaf = np.repeat(np.arange(len(sizes)), sizes)
    order = np.argsort(np.asarray(sizes)[of_leaf], kind="stable")
    return order, np.linalg.cholesky(fit.posterior.covariance[np.ix_(order, order)])


def sample(fit, n_warmup, n_samples, seconds, seed=0):
    """Samples on the real line, one chain."""
    problem, (order, scale) = fit.origin.problem, whitening(fit)
    held = (fit.posterior.mean[order], scale, np.argsort(order), problem.data, np.asarray(fit.origin.hyper.free))

    def potential(mean, scale, back, data, free):
        return lambda z: -problem.function((mean + scale @ z)[back], data, free)

    begin, step = hmc(potential_fn_gen=potential, algo="NUTS")
    state = begin(np.zeros(len(order)), n_warmup, model_args=held, rng_key=jax.random.key(seed), max_tree_depth=8)
    held, forth = jax.device_put(held), jax.jit(lambda z, held: (held[0] + held[1] @ z)[held[2]])
    move = jax.jit(lambda state, held: step(state, model_args=held))
    found, began = [], time.perf_counter()
    for at in range(n_warmup + n_samples):
        state = move(state, held)
        if at % 100 == 0:
            steps, size = int(state.num_steps), float(state.adapt_state.step_size)
            print(f"  {at}: {time.perf_counter() - began:.0f} s, {steps} leapfrogs of {size:.3f}", flush=True)
        if at >= n_warmup:
            found.append(np.asarray(forth(state.z, held)))
        if time.perf_counter() - began > seconds and len(found) > 100:
            break
    return np.stack(found)


def compare(fit, samples):
    natural = [jax.tree.leaves(fit.space.to_natural(one)) for one in samples]
    ours = [jax.tree.leaves(tree) for tree in (fit.mean, fit.sd)]
    first = 0
    for leaf, size in enumerate(fit.space.sizes):
        own = slice(first, first + size)
        first += size
        real = samples[:, own]
        enough = effective_sample_size(real[None])
        mean, sd = real.mean(axis=0), real.std(axis=0)
        away = np.abs(fit.posterior.mean[own] - mean) / sd
        wide = np.sqrt(fit.posterior.variance()[own]) / sd
        print(
            f"  {fit.space.leaves[leaf].name}: means within {away.max():.3f} sds (median {np.median(away):.3f}), sds "
            f"{np.quantile(wide, 0.05):.3f} to {np.quantile(wide, 0.95):.3f} times; {enough.min():.0f} effective samples",
            flush=True,
        )
        if size <= 20:
            values = np.stack([np.ravel(one[leaf]) for one in natural])
            for place in range(size):
                of_mean, of_sd = (np.ravel(part[leaf])[place] for part in ours)
                theirs = values[:, place]
                print(f"    {of_mean:.4f} ± {of_sd:.4f}; NUTS {theirs.mean():.4f} ± {theirs.std():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--warmup", type=int, default=300)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--save")
    asked = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for word in asked.models:
        name, *numbers = word.split(":")
        target, start, transforms, *hyper = getattr(terms, name)(*map(int, numbers))
        fit = qd.fit(target, start, transforms=transforms, hyper=hyper[0] if hyper else None, progress=False)
        print(f"{word}: {fit.posterior.dim} parameters, {fit.answer.trust.words}", flush=True)
        found = sample(fit, asked.warmup, asked.samples, asked.seconds)
        print(f"  {len(found)} samples", flush=True)
        if asked.save:
            np.savez(asked.save, samples=found, mean=fit.posterior.mean, variance=fit.posterior.variance())
        compare(fit, found)
