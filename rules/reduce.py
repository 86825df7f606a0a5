"""Reductions: ``sum``, ``prod``, ``max_over`` and ``min_over`` of a body over ``i`` in the half-open range ``[u, v)``.

Letters c d match integer literals; x y z match anything; p conditions. In a body they may speak of the index ``i``,
unless the guard says ``free(x)``; ``at(x, y)`` is ``x`` where the index is ``y``. A range with ``v <= u`` is empty.
"""

from eqsat.rule import Rule

REDUCE = [
    #    name                  left                                          right                                            guard                    reason
    Rule("sum-empty",          "sum(x, i, u, v)",                            "0",                                             "v < u + 1",             "nothing is added", source="B45 E6"),
    Rule("prod-empty",         "prod(x, i, u, v)",                           "1",                                             "v < u + 1",             "nothing is multiplied", source="E6"),
    Rule("max-empty",          "max_over(x, i, u, v)",                       "-2147483648",                                   "v < u + 1",             "the identity, by definition", source="E6"),
    Rule("min-empty",          "min_over(x, i, u, v)",                       "2147483647",                                    "v < u + 1",             "the identity, by definition", source="E6"),
    Rule("sum-once",           "sum(x, i, u, u + 1)",                        "at(x, u)",                                      why="one value"),
    Rule("prod-once",          "prod(x, i, u, u + 1)",                       "at(x, u)",                                      why="one value"),
    Rule("max-once",           "max_over(x, i, u, u + 1)",                   "at(x, u)",                                      why="one value"),

    Rule("sum-unparented",     "sum(x, i, u, v)",                            "x * max(v - u, 0)",                             "free(x)",               "the same value each time", source="B43 B46"),
    Rule("prod-unparented",    "prod(x, i, u, u + 3)",                       "x * x * x",                                     "free(x)",               "the same factor each time", source="B44"),
    Rule("max-unparented",     "max_over(x, i, u, v)",                       "x",                                             "free(x) and u < v",     "the same value each time, and at least once", source="B45 E6"),
    Rule("min-unparented",     "min_over(x, i, u, v)",                       "x",                                             "free(x) and u < v",     "the same value each time, and at least once", source="B45 E6"),

    Rule("sum-distributes",    "sum(x + y, i, u, v)",                        "sum(x, i, u, v) + sum(y, i, u, v)",             both_ways=True,          why="each half may collapse alone", source="B24"),
    Rule("sum-factor",         "sum(x * y, i, u, v)",                        "x * sum(y, i, u, v)",                           "free(x)",               "x is a factor of each addend"),
    Rule("prod-distributes",   "prod(x * y, i, u, v)",                       "prod(x, i, u, v) * prod(y, i, u, v)",           both_ways=True,          why="factors in any order"),
    Rule("sum-split",          "sum(x, i, u, v) + sum(x, i, v, w)",          "sum(x, i, u, w)",                               "u < v + 1 and v < w + 1", "one range after the other"),
    Rule("max-shift",          "max_over(x + y, i, u, v)",                   "x + max_over(y, i, u, v)",                      "free(x) and u < v",     "x moves all values alike"),
    Rule("min-shift",          "min_over(x + y, i, u, v)",                   "x + min_over(y, i, u, v)",                      "free(x) and u < v",     "x moves all values alike"),
    Rule("max-scale",          "max_over(x * y, i, u, v)",                   "x * max_over(y, i, u, v)",                      "free(x) and 0 < x + 1 and u < v", "a factor that is not negative keeps the order"),
    Rule("max-negate",         "max_over(-x, i, u, v)",                      "-min_over(x, i, u, v)",                         "u < v",                 "the sign turns the order"),

    Rule("sum-cast-bool",      "sum(x * where(p, 1, 0), i, u, v)",           "sum(where(p, x, 0), i, u, v)",                  why="a condition as a factor selects", source="B25"),
    Rule("sum-where-free",     "sum(where(p, x, y), i, u, v)",               "where(p, sum(x, i, u, v), sum(y, i, u, v))",    "free(p)",               "the condition is the same each time"),
    Rule("lift-less",          "sum(where(i + x < y, z, 0), i, u, v)",       "sum(where(i < y - x, z, 0), i, u, v)",          "free(x) and free(y)",   "the index alone on one side", source="B21"),
    Rule("lift-not-less",      "sum(where(y <= i + x, z, 0), i, u, v)",      "sum(where(y - x <= i, z, 0), i, u, v)",         "free(x) and free(y)",   "the index alone on one side", source="B22"),
    Rule("lift-equal",         "sum(where(i + x == y, z, 0), i, u, v)",      "sum(where(i == y - x, z, 0), i, u, v)",         "free(x) and free(y)",   "the index alone on one side", source="B23"),
    Rule("bound-above",        "sum(where(i < y, x, 0), i, u, v)",           "sum(x, i, u, min(v, y))",                       "free(y)",               "the range ends where the condition does", source="B18 B12"),
    Rule("bound-from",         "sum(where(y <= i, x, 0), i, u, v)",           "sum(x, i, max(u, y), v)",                       "free(y)",               "the range begins where the condition does", source="B12 B17 B22"),
    Rule("bound-below",        "sum(where(i < y, 0, x), i, u, v)",           "sum(x, i, max(u, y), v)",                       "free(y)",               "the range begins where the condition ends", source="B17 B12 E3"),
    Rule("bound-both",         "sum(where(y <= i and i < z, x, 0), i, u, v)", "sum(x, i, max(u, y), min(v, z))",              "free(y) and free(z)",   "the range is cut on both sides", source="B19"),
    Rule("gather",             "sum(where(i == y, x, 0), i, u, v)",          "where(u <= y and y < v, at(x, y), 0)",          "free(y)",               "at most one value counts, if it is in the range", source="B20"),
    Rule("gather-ne",          "sum(where(i != y, 0, x), i, u, v)",          "where(u <= y and y < v, at(x, y), 0)",          "free(y)",               "at most one value counts, if it is in the range", source="B20"),

    Rule("sum-index",          "sum(i, i, u, v)",                            "(v*(v - 1) - u*(u - 1)) // 2",                  "u < v + 1",             "Gauss"),
    Rule("sum-squares",        "sum(i * i, i, u, v)",                        "((v - 1)*v*(2*v - 1) - (u - 1)*u*(2*u - 1)) // 6", "u < v + 1",          "Faulhaber"),
    Rule("sum-quotient",       "sum((i + x) // d, i, u, u + d)",             "u + x",                                         "free(x) and d > 0",     "Hermite: over one period the floors add up to u + x"),
    Rule("sum-remainder",      "sum((i + x) % d, i, u, u + d)",              "d*(d - 1) // 2",                                "free(x) and d > 0",     "over one period every residue once"),
    Rule("count-residues",     "sum(where(i % d == c, 1, 0), i, u, v)",      "(v - c + d - 1) // d - (u - c + d - 1) // d",   "d > 0 and 0 <= c and c < d and u < v + 1", "every d-th index"),
]
