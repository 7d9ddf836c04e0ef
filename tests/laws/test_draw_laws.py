"""What frozen draws promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import quenched as qd
import registry
from quenched.draws import make, smallest

every_kind = pytest.mark.parametrize("kind", sorted(registry.DRAWS))
dims = st.integers(1, 12)
seeds = st.integers(0, 2**31)


def even(n):
    return n + n % 2


def partitions(dim):
    """Ways to cut 0..dim-1 into groups, in any order."""
    return st.permutations(range(dim)).flatmap(
        lambda order: st.lists(st.integers(1, 4), min_size=dim, max_size=dim).map(lambda sizes: cut(order, sizes))
    )


def cut(order, sizes):
    ends = np.minimum(np.cumsum(sizes), len(order))
    return tuple(tuple(order[a:b]) for a, b in zip([0, *ends], ends, strict=False) if b > a)


@registry.law
@given(dims, st.integers(0, 9), seeds)
def test_matched_draws_have_exact_moments(dim, more, seed):
    """From the smallest number on: mean 0 and covariance I, and every draw with its mirror image."""
    points = qd.matched(2 * (dim + more), dim, seed).points
    np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(points.T @ points / len(points), np.eye(dim), atol=1e-12)
    half = len(points) // 2
    np.testing.assert_array_equal(points[half:], -points[:half])


@registry.law
@given(st.data(), st.integers(2, 10), seeds)
def test_groups_are_matched_within(data, dim, seed):
    groups = data.draw(partitions(dim))
    n = 2 * max(map(len, groups))
    draws = qd.matched(n, dim, seed, groups=groups)
    assert draws.groups == groups
    for group in groups:
        part = draws.points[:, list(group)]
        np.testing.assert_allclose(part.T @ part / n, np.eye(len(group)), atol=1e-12)


@st.composite
def trees_of_groups(draw):
    """Groups that each share with the earlier ones some of what one of them holds, in any order."""
    groups, dim = [], 0
    for _ in range(draw(st.integers(1, 7))):
        earlier = draw(st.sampled_from(groups)) if groups else ()
        shared = draw(st.lists(st.sampled_from(earlier), unique=True, max_size=3)) if earlier else []
        fresh = range(dim, dim + draw(st.integers(0 if shared else 1, 3)))
        groups.append((*shared, *fresh))
        dim += len(fresh)
    names, order = draw(st.permutations(range(dim))), draw(st.permutations(groups))
    return tuple(tuple(draw(st.permutations([names[c] for c in group]))) for group in order), dim


@settings(registry.law, max_examples=60)
@given(trees_of_groups(), st.integers(0, 3), seeds)
def test_groups_that_share_coordinates_are_matched_within(tree, more, seed):
    """Down to the smallest number of draws, which does not depend on how many groups there are."""
    groups, dim = tree
    n = smallest("matched", dim, groups)
    assert n == 2 * max(map(len, groups))
    points = qd.matched(n + 2 * more, dim, seed, groups=groups).points
    np.testing.assert_array_equal(points[len(points) // 2 :], -points[: len(points) // 2])
    for group in groups:
        part = points[:, list(group)]
        np.testing.assert_allclose(part.T @ part / len(points), np.eye(len(group)), atol=1e-9)


@pytest.mark.parametrize("n_locals", [1, 2])
def test_globals_and_the_locals_of_each_group(n_locals):
    """The number of draws does not grow with the number of groups, and what is not coupled is left to chance."""
    groups = tuple((0, 1, *range(first, first + n_locals)) for first in range(2, 2 + 50 * n_locals, n_locals))
    draws = qd.matched(2 * (2 + n_locals), 2 + 50 * n_locals, groups=groups)
    moments = draws.points.T @ draws.points / draws.n
    np.testing.assert_allclose(moments[:2], np.eye(2, draws.dim), atol=1e-12)
    for group in groups:
        np.testing.assert_allclose(moments[np.ix_(group, group)], np.eye(2 + n_locals), atol=1e-12)
    assert np.abs(moments[2, 2 + n_locals :]).max() > 0.1
    grown = draws.grow(20).points
    np.testing.assert_allclose(grown[:, :2].T @ grown / 20, np.eye(2, draws.dim), atol=1e-12)


def test_matching_moves_the_points_little():
    """Many draws are nearly matched as they are drawn: with overlapping groups too they keep their raw points."""
    groups = tuple((0, local) for local in range(1, 1001))
    points = qd.matched(1000, 1001, groups=groups).points[:500]
    raw = qd.sobol(500, 1001).points
    assert np.sqrt(np.mean((points - raw) ** 2)) < 0.1


RING = ((0, 1), (1, 2), (2, 0))


def test_groups_in_a_ring_are_matched_all_together_or_refused():
    with pytest.raises(ValueError, match=r"n=4: .*groups that overlap in a ring.*all 3 coordinates.*at least 6 draws"):
        qd.matched(4, 3, groups=RING)
    assert smallest("matched", 3, RING) == 6
    points = qd.matched(6, 3, groups=RING).points
    np.testing.assert_allclose(points.T @ points / 6, np.eye(3), atol=1e-12)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (((0,),), "groups: no group holds coordinate 1"),
        ((), "groups: no group holds coordinate 0"),
        (((0, 1), ()), r"groups: \(\) is empty or names a coordinate twice"),
        (((0, 0), (1,)), r"groups: \(0, 0\) is empty or names a coordinate twice"),
        (((0, 2), (1,)), "groups: there is no coordinate 2; the 2 are numbered from 0 to 1"),
        (((0, -1), (1,)), "groups: there is no coordinate -1"),
        (((0, 1.0),), "groups: 1.0 is not a coordinate"),
        (((0, True),), "groups: True is not a coordinate"),
        (((0, None),), "groups: None is not a coordinate"),
        ((0, 1), r"groups=\(0, 1\): give sets of coordinates"),
        (3, "groups=3: give sets of coordinates"),
        ("01", "groups: '0' is not a coordinate"),
    ],
)
def test_malformed_groups_are_refused(groups, message):
    """Coordinates in no group were memory that nobody had written to."""
    with pytest.raises(ValueError, match=message):
        qd.matched(4, 2, groups=groups)


def test_groups_may_be_lists_and_belong_to_matched_draws():
    draws = qd.matched(4, 3, groups=[[0, 1], np.array([1, 2])])
    assert repr(draws.groups) == "((0, 1), (1, 2))"  # Python's own numbers, which a file can hold
    assert draws.grow(6).groups == draws.groups
    with pytest.raises(ValueError, match="groups: iid draws are not matched"):
        make("iid", 4, 2, groups=((0,), (1,)))


@registry.law
@given(dims, st.integers(1, 40), seeds)
def test_antithetic_draws_are_mirrored(dim, half, seed):
    points = qd.antithetic(2 * half, dim, seed).points
    np.testing.assert_array_equal(points[half:], -points[:half])
    np.testing.assert_array_equal(points[:half], qd.iid(half, dim, seed).points)


@every_kind
@registry.law
@given(dims, st.integers(1, 20), seeds)
def test_same_seed_same_bits(kind, dim, more, seed):
    n = even(smallest(kind, dim) + more)
    first, second = (registry.DRAWS[kind](n, dim, seed) for _ in range(2))
    assert first.points.tobytes() == second.points.tobytes()
    assert (first.kind, first.seed, first.n, first.dim) == (kind, seed, n, dim)
    other = registry.DRAWS[kind](n, dim, seed + 1)
    assert first.points.tobytes() != other.points.tobytes()


@pytest.mark.parametrize("kind", ["iid", "sobol"])
@registry.law
@given(dims, st.integers(1, 20), st.integers(1, 30), seeds)
def test_growth_keeps_plain_draws_as_a_prefix(kind, dim, n, more, seed):
    draws = registry.DRAWS[kind](n, dim, seed)
    np.testing.assert_array_equal(draws.grow(n + more).points[:n], draws.points)


@registry.law
@given(dims, st.integers(1, 20), st.integers(1, 30), seeds)
def test_growth_keeps_mirrored_draws_and_their_images(dim, half, more, seed):
    """The raw half is the prefix; the images follow the whole of it."""
    grown = qd.antithetic(2 * half, dim, seed).grow(2 * (half + more)).points
    np.testing.assert_array_equal(grown[:half], qd.antithetic(2 * half, dim, seed).points[:half])


@registry.law
@given(dims, st.integers(0, 6), st.integers(1, 10), seeds)
def test_growth_matches_the_whole_set_again(dim, extra, more, seed):
    """The raw draws are kept, not the whitened ones: growing equals asking for that many at once."""
    small, n = qd.matched(2 * (dim + extra), dim, seed), 2 * (dim + extra + more)
    grown = small.grow(n)
    np.testing.assert_array_equal(grown.points, qd.matched(n, dim, seed).points)
    # Undoing the whitening of both sets gives raw draws with a common prefix.
    raw = qd.sobol(n // 2, dim, seed).points
    for draws in (small, grown):
        half = draws.n // 2
        gram = raw[:half].T @ raw[:half] / half
        values, vectors = np.linalg.eigh(gram)
        whitened = raw[:half] @ (vectors / np.sqrt(values)) @ vectors.T
        np.testing.assert_allclose(draws.points[:half], whitened, rtol=1e-6, atol=1e-6)


@registry.law
@given(st.data(), st.integers(2, 8), seeds)
def test_growth_keeps_groups(data, dim, seed):
    groups = data.draw(partitions(dim))
    grown = qd.matched(2 * dim, dim, seed, groups=groups).grow(4 * dim)
    np.testing.assert_array_equal(grown.points, qd.matched(4 * dim, dim, seed, groups=groups).points)


@every_kind
@pytest.mark.parametrize("dim", [1, 3, 20])
def test_too_few_draws_name_the_smallest_number_that_works(kind, dim):
    least = smallest(kind, dim)
    assert registry.DRAWS[kind](least, dim).n == least
    for n in {least - 1, least // 2} - {0, least}:
        with pytest.raises(ValueError, match=rf"n={n}:.*at least {least} draws"):
            registry.DRAWS[kind](n, dim)


@pytest.mark.parametrize("kind", ["antithetic", "matched"])
def test_mirrored_draws_come_in_pairs(kind):
    with pytest.raises(ValueError, match=r"n=9:.*even number"):
        registry.DRAWS[kind](9, 2)


def test_groups_need_fewer_draws_and_say_how_many():
    groups = ((0, 1), (2, 3), (4,))
    assert qd.matched(4, 5, groups=groups).n == 4
    with pytest.raises(ValueError, match="groups of up to 2 coordinates need at least 4 draws"):
        qd.matched(2, 5, groups=groups)


def test_draws_do_not_shrink():
    with pytest.raises(ValueError, match="n=4: draws grow, and there are 8 already"):
        qd.iid(8, 2).grow(4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("iid", 0, 2), "n=0"),
        (("iid", 4.0, 2), "n=4.0"),
        (("iid", True, 2), "n=True"),
        (("iid", 4, 0), "dim=0"),
        (("iid", 4, 2, -1), "seed=-1"),
        (("random", 4, 2), "use one of iid, antithetic, sobol, matched"),
    ],
)
def test_bad_numbers_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make(*arguments)


@every_kind
def test_every_kind_is_standard_normal(kind):
    points = registry.DRAWS[kind](4096, 2, seed=1).points
    for column in points.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3
    assert abs(np.corrcoef(points.T)[0, 1]) < 0.06


def test_sobol_draws_are_more_even_than_independent_ones():
    """The mean of a smooth function has a far smaller error than 1 / sqrt(n)."""
    errors = {
        kind: np.std(
            [np.mean(np.cos(registry.DRAWS[kind](256, 2, seed=seed).points.sum(axis=1))) for seed in range(20)]
        )
        for kind in ("iid", "sobol")
    }
    assert errors["sobol"] < 0.2 * errors["iid"]
