"""Searches of a `MeanTree` for a node in a blocking pair with a given one.

A search for a node `a` looks for the node Q with the smallest ζ(a, Q) at which both exist and neither has merged yet:
at least the heights of both, and below those of their parents. In a monotone tree no such Q is above or below `a`, so
this need not be checked; and there can be none below a node that is no higher than `a`.
"""

from __future__ import annotations

import numpy as np

from evertree.kernels.columns import (
    BOTH_LISTS,
    EVERYWHERE,
    NO_LIST,
    NULL,
    TO_EXCHANGE,
    UNLIMITED,
    WIDER,
    MeanTree,
    Search,
)
from evertree.kernels.compile import inline, kernel, step
from evertree.kernels.shared.check import MANY_COLUMNS, is_blocking
from evertree.kernels.shared.linkage_values import least_value, value_of_sq
from evertree.kernels.shared.neighbours import forget_near, may_enter, note_found, note_met
from evertree.kernels.shared.partner_search import climb, no_pieces
from evertree.kernels.shared.topology import is_leaf, sibling
from evertree.kernels.signatures import Floats, Ints
from evertree.kernels.statistics.means import sq_dist
from evertree.kernels.statistics.sketches import least_sq_dist

#: The search for a node is exhaustive if it has more than two in this many points: few nodes are higher than it, and
#: others need not be visited. Should there be many, it stops after this many steps.
N_HIGH = 1_000
MOST_STEPS = 4_000

#: A point that stays beside a cluster more than so many times heavier has a wider descent: it is far out, or in a wrong
#: place.
MANY_BESIDE = 4

#: A bound excludes a cluster if it is larger by more than this share: the radius of a node may be off by rounding.
ROUNDING = 1e-9


@step
def is_partner(linkage, tree, a, u, value):
    """Whether `a` and `u`, with ζ(a, u) = `value`, are a blocking pair."""
    if tree.parent[a] == NULL:  # a new point, which may merge with any node
        return value >= tree.height[u]
    return is_blocking(linkage, tree, linkage.tolerance, a, u, value)


@inline
def try_node(linkage, tree, a, u, least, best, smallest, is_needed):
    """Try `u` as a partner of `a`; the best one so far is `best`, at ζ = `smallest`. O(m).

    Returns the best one now and its ζ, the squared distance between the means of `a` and `u`, and ζ(a, u). If that
    distance is at least `least`, and so `u` is no partner, both follow from it, unless they are needed.
    """
    value = value_of_sq(linkage, tree, a, u, least)
    if value >= min(smallest, tree.height[tree.parent[u]]) and not is_needed:
        return best, smallest, least, value
    sq = sq_dist(tree.mean, a, u)
    value = value_of_sq(linkage, tree, a, u, sq)
    if value < min(smallest, tree.height[tree.parent[u]]) and is_partner(linkage, tree, a, u, value):
        best, smallest = u, value
    return best, smallest, sq, value


@inline
def usual_width(search):
    """The width of most descents."""
    return search.front.shape[1] // WIDER


@inline
def keep_nearest(search, side, count, u, value, width):
    """Put `u` among the `width` nearest nodes of the next level, sorted; return their number. O(width)."""
    if count == width:
        if not value < search.front_value[side, count - 1]:
            return count
        count -= 1
    k = count
    while k > 0 and search.front_value[side, k - 1] > value:
        search.front[side, k] = search.front[side, k - 1]
        search.front_value[side, k] = search.front_value[side, k - 1]
        k -= 1
    search.front[side, k] = u
    search.front_value[side, k] = value
    return count + 1


@inline
def is_higher(tree, a, u):
    """Whether there may be a partner of `a` below `u`."""
    return not is_leaf(u) and tree.height[u] > tree.height[a]


@inline
def may_hold(linkage, tree, search, a, u, sq, smallest):
    """Whether a node below `u` may be a partner of `a`, at ζ below `smallest`.

    The mean of a cluster below u is within the radius of u from the mean of u.
    """
    if not is_higher(tree, a, u):
        return False
    distance = np.sqrt(sq) - tree.radius[u]
    return distance <= 0.0 or least_value(linkage, tree, a, distance, search.lightest[0]) <= smallest


@inline
def may_be_listed(search, i, j, least):
    """Whether leaf `i`, which meets leaf `j` at least that far away, notes anything of it."""
    notes = search.state["notes"][0]
    return (notes != NO_LIST and may_enter(search, i, least)) or (notes == BOTH_LISTS and may_enter(search, j, least))


@step
def descend_means(linkage, tree, search, a, limit, closed, width):
    """From the root, keep the `width` nodes nearest to `a` on each level, and test every node below them.

    Node `closed` and all below it are left out. Returns the node sought, NULL if none was found below `limit`, and its
    ζ. If `a` is a leaf, visited leaves go on its list. With a limit, a node is dropped if a bound excludes all below
    it. O(width · depth · m).
    """
    best, smallest = np.int64(NULL), limit
    is_partner_search = tree.parent[a] != NULL and limit < np.inf
    root = tree.state["root"][0]
    search.front[0, 0] = root
    count, side = 0 if is_leaf(root) or root == closed else 1, 0
    while count > 0:
        n_next = 0
        for k in range(count):
            p = np.int64(search.front[side, k])
            for turn in range(2):
                u = np.int64(tree.left[p] if turn == 0 else tree.right[p])
                if u == a or u == closed:  # noqa: SIM109  a tuple is slower
                    continue
                least = least_sq_dist(tree, a, u)
                if is_leaf(u):
                    is_needed = is_leaf(a) and may_be_listed(search, a, u, np.sqrt(least))
                else:
                    value = value_of_sq(linkage, tree, a, u, least)
                    is_full = n_next == width
                    is_needed = not (is_full and value >= search.front_value[1 - side, n_next - 1])
                    is_needed &= limit == np.inf or may_hold(linkage, tree, search, a, u, least, smallest)
                best, smallest, sq, value = try_node(linkage, tree, a, u, least, best, smallest, is_needed)
                if is_leaf(u):
                    if is_needed and is_partner_search:
                        note_found(search, a, u, np.sqrt(sq))
                    elif is_needed:
                        note_met(search, a, u, np.sqrt(sq))
                elif limit == np.inf or may_hold(linkage, tree, search, a, u, sq, smallest):
                    n_next = keep_nearest(search, 1 - side, n_next, u, value, width)
        count, side = n_next, 1 - side
    return best, smallest


@step
def exhaust_means(linkage, tree, search, a, limit, closed, most_steps):
    """Test every node, except those that a bound excludes, and `closed` and all below it. O(n m) at most.

    The nearer child comes first; but in many columns the left one, and all that are higher if steps are limited: what
    is known of distances must not decide. Returns the node sought, NULL if there is none below `limit`, and its ζ.
    """
    best, smallest = np.int64(NULL), limit
    is_wide = tree.mean.shape[1] >= MANY_COLUMNS
    is_counted = is_wide and most_steps < UNLIMITED
    is_measured = not is_wide or (not is_counted and tree.sketch.direction.shape[0] == 0)
    search.stack[0] = tree.state["root"][0]
    count = 0 if search.stack[0] == closed else 1
    while count > 0 and most_steps > 0:
        most_steps -= 1
        count -= 1
        p = np.int64(search.stack[count])
        first = count
        first_sq = 0.0
        for turn in range(2):
            u = np.int64(tree.left[p] if turn == 0 else tree.right[p])
            if u == a or u == closed:  # noqa: SIM109  a tuple is slower
                continue
            least = least_sq_dist(tree, a, u)
            best, smallest, sq, _ = try_node(linkage, tree, a, u, least, best, smallest, is_measured)
            if is_higher(tree, a, u) and (is_counted or may_hold(linkage, tree, search, a, u, sq, smallest)):
                search.stack[count] = u
                count += 1
                if count == first + 1:
                    first_sq = sq
                elif sq > first_sq and not is_wide:
                    search.stack[first], search.stack[first + 1] = search.stack[first + 1], search.stack[first]
    return best, smallest


@step
def partner_by_means(linkage, tree, search, a, limit):
    """The node in a blocking pair with `a`, below `limit`, and ζ; NULL if none was found.

    Neighbours are tried first, which is cheap and usually right; then, for a large node, all higher nodes, as these are
    few; otherwise a descent.
    """
    if search.state["reach"][0] == EVERYWHERE:
        return exhaust_means(linkage, tree, search, a, limit, np.int64(NULL), np.int64(UNLIMITED))
    q, value = climb(linkage, tree, search, a, limit, no_pieces(search))
    if q != NULL:
        return q, value
    return partner_beyond(linkage, tree, search, a, limit, np.int64(NULL))


@step
def partner_beyond(linkage, tree, search, a, limit, closed):
    """The same without neighbours. Node `closed` and all below it are left out."""
    if N_HIGH * tree.size[a] > 2.0 * max(tree.size[tree.state["root"][0]], search.total[0]):
        return exhaust_means(linkage, tree, search, a, limit, closed, np.int64(MOST_STEPS))
    q, value = descend_means(linkage, tree, search, a, limit, closed, usual_width(search))
    if q == NULL and is_leaf(a) and tree.size[sibling(tree, a)] > MANY_BESIDE * tree.size[a]:
        return descend_means(linkage, tree, search, a, limit, closed, WIDER * usual_width(search))
    return q, value


@step
def find_near_means(linkage, tree, search, i):
    """Fill the list of leaf `i` by a descent; return the number of steps left. O(width · depth · m)."""
    descend_means(linkage, tree, search, i, np.inf, np.int64(NULL), usual_width(search))
    return TO_EXCHANGE


@step
def place_by_means(linkage, tree, search, i):
    """The node beside which the new leaf `i` belongs: the one with the smallest ζ, by a descent.

    Its ζ must be between its own height and that of its parent; if no visited node qualifies, it is the nearest point
    visited.
    """
    forget_near(search, i, TO_EXCHANGE)
    root = tree.state["root"][0]
    value = value_of_sq(linkage, tree, i, root, sq_dist(tree.mean, i, root))
    is_beside_root = value >= tree.height[root]
    if is_leaf(root):
        note_met(search, i, root, np.sqrt(sq_dist(tree.mean, i, root)))
        return root
    q, _ = descend_means(
        linkage, tree, search, i, value if is_beside_root else np.inf, np.int64(NULL), usual_width(search)
    )
    if q != NULL:
        return q
    return root if is_beside_root else np.int64(search.near[i >> 1, 0])


@kernel
def find_nearest_points(tree: MeanTree, search: Search, guests: Ints, nearest: Ints, sq_distance: Floats) -> None:
    """Fill `nearest` with the leaf of the tree nearest to each of the detached leaves, and their squared distances.

    Exhaustive, the nearer child first, but for what a bound excludes; a tie goes to the older point. O(n m) at most.
    """
    for k in range(guests.size):
        a = np.int64(guests[k])
        best, least, reach = np.int64(NULL), np.inf, np.inf
        search.stack[0] = tree.state["root"][0]
        count = 1
        while count > 0:
            count -= 1
            u = np.int64(search.stack[count])
            sq = least_sq_dist(tree, a, u)
            if np.sqrt(sq) > reach + tree.radius[u]:
                continue
            sq = sq_dist(tree.mean, a, u)
            if is_leaf(u):
                if sq < least or (sq == least and tree.birth[u] < tree.birth[best]):
                    best, least = u, sq
                    reach = np.sqrt(sq) * (1.0 + ROUNDING)
            elif np.sqrt(sq) - tree.radius[u] <= reach:
                left, right = np.int64(tree.left[u]), np.int64(tree.right[u])
                if sq_dist(tree.mean, a, left) < sq_dist(tree.mean, a, right):
                    left, right = right, left
                search.stack[count] = left
                search.stack[count + 1] = right
                count += 2
        nearest[k] = best
        sq_distance[k] = least
