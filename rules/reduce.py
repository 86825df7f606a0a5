"""Reductions: ``sum``, ``prod``, ``max_over`` and ``min_over`` of a body over ``i`` in the half-open range ``[u, v)``.

Letters c d match integer literals; x y z match anything; p conditions. In a body they may speak of the index ``i``,
unless the guard says ``free(x)``; ``at(x, y)`` is ``x`` where the index is ``y``. A range with ``v <= u`` is empty.

The last rules merge two loops, split one, and swap two: which is cheaper is for extraction to say, and what the bodies
become meanwhile for the other rules.
"""

from eqsat.egraph.rule import Rule

REDUCE = [
    #    name                  left                                          right                                            guard                    reason
    Rule("sum-empty",          "sum(x, i, u, v)",                            "0",                                             "v < u + 1",             "nothing is added", source="B45 E6"),
    Rule("prod-empty",         "prod(x, i, u, v)",                           "1",                                             "v < u + 1",             "nothing is multiplied", source="E6"),
    Rule("max-empty",          "max_over(x, i, u, v)",                       "-2147483648",                                   "v < u + 1",             "the identity, by definition", source="E6"),
    Rule("min-empty",          "min_over(x, i, u, v)",                       "2147483647",                                    "v < u + 1",             "the identity, by definition", source="E6"),
    Rule("sum-once",           "sum(x, i, u, u + 1)",                        "at(x, u)",                                      why="one value"),
    Rule("prod-once",          "prod(x, i, u, u + 1)",                       "at(x, u)",                                      why="one value"),
    Rule("max-once",           "max_over(x, i, u, u + 1)",                   "at(x, u)",                                      why="one value"),
    Rule("min-once",           "min_over(x, i, u, u + 1)",                   "at(x, u)",                                      why="one value"),

    Rule("sum-unparented",     "sum(x, i, u, v)",                            "x * max(v - u, 0)",                             "free(x)",               "the same value each time", source="B43 B46"),
    Rule("prod-unparented",    "prod(x, i, u, u + 3)",                       "x * x * x",                                     "free(x)",               "the same factor each time", source="B44"),
    Rule("prod-bit",           "prod(x, i, u, v)",                           "where(u < v, x, 1)",                            "free(x) and 0 <= vmin(x) and vmax(x) < 2", "powers of 0 and 1 are these"),
    Rule("max-unparented",     "max_over(x, i, u, v)",                       "x",                                             "free(x) and u < v",     "the same value each time, and at least once", source="B45 E6"),
    Rule("min-unparented",     "min_over(x, i, u, v)",                       "x",                                             "free(x) and u < v",     "the same value each time, and at least once", source="B45 E6"),

    Rule("sum-distributes",    "sum(x + y, i, u, v)",                        "sum(x, i, u, v) + sum(y, i, u, v)",             both_ways=True,          why="each half may collapse alone", source="B24"),
    Rule("sum-factor",         "sum(x * y, i, u, v)",                        "x * sum(y, i, u, v)",                           "free(x)",               "x is a factor of each addend"),
    Rule("prod-distributes",   "prod(x * y, i, u, v)",                       "prod(x, i, u, v) * prod(y, i, u, v)",           both_ways=True,          why="factors in any order"),
    Rule("sum-split",          "sum(x, i, u, v) + sum(x, i, v, w)",          "sum(x, i, u, w)",                               "u < v + 1 and v < w + 1", "one range after the other"),
    Rule("max-shift",          "max_over(x + y, i, u, v)",                   "x + max_over(y, i, u, v)",                      "free(x) and u < v",     "x moves all values alike"),
    Rule("min-shift",          "min_over(x + y, i, u, v)",                   "x + min_over(y, i, u, v)",                      "free(x) and u < v",     "x moves all values alike"),
    Rule("max-factor",         "max_over(x * y, i, u, v)",                   "x * max_over(y, i, u, v)",                      "free(x) and 0 < x + 1 and u < v", "a factor that is not negative keeps the order"),
    Rule("min-factor",         "min_over(x * y, i, u, v)",                   "x * min_over(y, i, u, v)",                      "free(x) and 0 < x + 1 and u < v", "a factor that is not negative keeps the order"),
    Rule("max-negate",         "max_over(-x, i, u, v)",                      "-min_over(x, i, u, v)",                         "u < v",                 "the sign turns the order"),
    Rule("min-negate",         "min_over(-x, i, u, v)",                      "-max_over(x, i, u, v)",                         "u < v",                 "the sign turns the order"),

    Rule("sum-cast-bool",      "sum(x * where(p, 1, 0), i, u, v)",           "sum(where(p, x, 0), i, u, v)",                  why="a condition as a factor selects", source="B25"),
    Rule("sum-where-free",     "sum(where(p, x, y), i, u, v)",               "where(p, sum(x, i, u, v), sum(y, i, u, v))",    "free(p)",               "the condition is the same each time"),
    Rule("sum-where-apart",    "sum(where(p, x, y), i, u, v)",               "sum(where(p, x - y, 0), i, u, v) + y * max(v - u, 0)", "free(y)",         "y each time, and what x is more"),
    Rule("sum-where-and",      "sum(where(p and q, x, 0), i, u, v)",         "where(p, sum(where(q, x, 0), i, u, v), 0)",     "free(p)",               "one condition is the same each time"),
    Rule("lift-less",          "sum(where(i + x < y, z, 0), i, u, v)",       "sum(where(i < y - x, z, 0), i, u, v)",          "free(x) and free(y)",   "the index alone on one side", source="B21"),
    Rule("lift-not-less",      "sum(where(y <= i + x, z, 0), i, u, v)",      "sum(where(y - x <= i, z, 0), i, u, v)",         "free(x) and free(y)",   "the index alone on one side", source="B22"),
    Rule("lift-equal",         "sum(where(i + x == y, z, 0), i, u, v)",      "sum(where(i == y - x, z, 0), i, u, v)",         "free(x) and free(y)",   "the index alone on one side", source="B23"),
    Rule("bound-above",        "sum(where(i < y, x, 0), i, u, v)",           "sum(x, i, u, min(v, y))",                       "free(y)",               "the range ends where the condition does", source="B18 B12"),
    Rule("bound-from",         "sum(where(y <= i, x, 0), i, u, v)",           "sum(x, i, max(u, y), v)",                       "free(y)",               "the range begins where the condition does", source="B12 B17 B22"),
    Rule("bound-below",        "sum(where(i < y, 0, x), i, u, v)",           "sum(x, i, max(u, y), v)",                       "free(y)",               "the range begins where the condition ends", source="B17 B12 E3"),
    Rule("bound-split",        "sum(where(i < y, x, z), i, u, v)",           "sum(x, i, u, min(v, y)) + sum(z, i, max(u, y), v)", "free(y)",            "one range up to the condition's end, another from it"),
    Rule("bound-both",         "sum(where(y <= i and i < z, x, 0), i, u, v)", "sum(x, i, max(u, y), min(v, z))",              "free(y) and free(z)",   "the range is cut on both sides", source="B19"),
    Rule("gather",             "sum(where(i == y, x, 0), i, u, v)",          "where(u <= y and y < v, at(x, y), 0)",          "free(y)",               "at most one value counts, if it is in the range", source="B20"),
    Rule("prod-gather",        "prod(where(i == y, x, 1), i, u, v)",         "where(u <= y and y < v, at(x, y), 1)",          "free(y)",               "at most one factor counts, if it is in the range"),
    Rule("gather-ne",          "sum(where(i != y, 0, x), i, u, v)",          "where(u <= y and y < v, at(x, y), 0)",          "free(y)",               "at most one value counts, if it is in the range", source="B20"),

    Rule("gather-beside",       "sum(where(i == y, x, z), i, u, v)",          "sum(z, i, u, v) + where(u <= y and y < v, at(x, y) - at(z, y), 0)","free(y) and (vmin(z) < 0 or 0 < vmax(z))",               "one addend is another, if it is in the range"),
    Rule("max-distributes",     "max_over(max(x, y), i, u, v)",               "max(max_over(x, i, u, v), max_over(y, i, u, v))",both_ways=True,          why="the largest of all values"),
    Rule("min-distributes",     "min_over(min(x, y), i, u, v)",               "min(min_over(x, i, u, v), min_over(y, i, u, v))",both_ways=True,          why="the smallest of all values"),
    Rule("max-below",           "max_over(min(x, y), i, u, v)",               "min(max_over(x, i, u, v), y)",                  "free(y) and u < v",     "a bound of each value is one of the largest"),
    Rule("min-above",           "min_over(max(x, y), i, u, v)",               "max(min_over(x, i, u, v), y)",                  "free(y) and u < v",     "a bound of each value is one of the smallest"),
    Rule("max-quotient",        "max_over(x // d, i, u, v)",                  "max_over(x, i, u, v) // d",                     "d > 0 and u < v",       "a quotient keeps the order"),
    Rule("min-quotient",        "min_over(x // d, i, u, v)",                  "min_over(x, i, u, v) // d",                     "d > 0 and u < v",       "a quotient keeps the order"),
    Rule("max-split",           "max(max_over(x, i, u, v), max_over(x, i, v, w))","max_over(x, i, u, w)",                          "u < v + 1 and v < w + 1 and -2147483649 < vmin(x)","one range after the other; an empty one decides nothing"),
    Rule("min-split",           "min(min_over(x, i, u, v), min_over(x, i, v, w))","min_over(x, i, u, w)",                          "u < v + 1 and v < w + 1 and vmax(x) < 2147483648","one range after the other; an empty one decides nothing"),

    Rule("max-index",          "max_over(i, i, u, v)",                       "v - 1",                                         "u < v",                 "the last one"),
    Rule("min-index",          "min_over(i, i, u, v)",                       "u",                                             "u < v",                 "the first one"),
    Rule("sum-index",          "sum(i, i, u, v)",                            "(v*(v - 1) - u*(u - 1)) // 2",                  "u < v + 1",             "Gauss"),
    Rule("sum-squares",        "sum(i * i, i, u, v)",                        "((v - 1)*v*(2*v - 1) - (u - 1)*u*(2*u - 1)) // 6", "u < v + 1",          "Faulhaber"),
    Rule("sum-quotient",       "sum((i + x) // d, i, u, u + d)",             "u + x",                                         "free(x) and d > 0",     "Hermite: over one period the floors add up to u + x"),
    Rule("sum-remainder",      "sum((i + x) % d, i, u, u + d)",              "d*(d - 1) // 2",                                "free(x) and d > 0",     "over one period every residue once"),
    Rule("sum-quotient-by",     "sum((i + x) // y, i, u, u + y)",             "u + x",                                         "free(x) and 0 < y",     "Hermite, of a period that is no literal"),
    Rule("max-remainder",       "max_over((i + x) % d, i, u, u + d)",         "d - 1",                                         "free(x) and d > 0",     "over one period every residue once"),
    Rule("min-remainder",       "min_over((i + x) % d, i, u, u + d)",         "0",                                             "free(x) and d > 0",     "over one period every residue once"),
    Rule("prod-index",          "prod(i, i, u, v)",                           "0",                                             "u < 1 and 0 < v",       "0 is among the factors"),
    Rule("count-residues",     "sum(where(i % d == c, 1, 0), i, u, v)",      "(v - c + d - 1) // d - (u - c + d - 1) // d",   "d > 0 and 0 <= c and c < d and u < v + 1", "every d-th index"),

    Rule("sum-merge",          "sum(sum(x, j, c, c + d), i, u, v)",          "sum(at(x, u + t//d, c + t%d), t, 0, (v - u)*d)", "d > 0",                "two digits are one number"),
    Rule("prod-merge",         "prod(prod(x, j, c, c + d), i, u, v)",        "prod(at(x, u + t//d, c + t%d), t, 0, (v - u)*d)", "d > 0",               "two digits are one number"),
    Rule("max-merge",          "max_over(max_over(x, j, c, c + d), i, u, v)", "max_over(at(x, u + t//d, c + t%d), t, 0, (v - u)*d)", "d > 0",          "two digits are one number"),
    Rule("min-merge",          "min_over(min_over(x, j, c, c + d), i, u, v)", "min_over(at(x, u + t//d, c + t%d), t, 0, (v - u)*d)", "d > 0",          "two digits are one number"),
    Rule("sum-merge-shorter",   "sum(sum(x, j, c, z), i, u, v)",              "sum(where(c + t%d < at(z, u + t//d), at(x, u + t//d, c + t%d), 0), t, 0, (v - u)*d)", "steps(x, d) and 0 < d and vmax(z) < c + d + 1 and vmin(z) < vmax(z)", "rows of which some end before d values"),
    Rule("sum-merge-later",     "sum(sum(x, j, w, c), i, u, v)",              "sum(where(at(w, u + t//d) <= c - d + t%d, at(x, u + t//d, c - d + t%d), 0), t, 0, (v - u)*d)", "steps(x, d) and 0 < d and c - d - 1 < vmin(w) and vmin(w) < vmax(w)", "rows of which some begin after the first of d values"),
    Rule("sum-split-range",    "sum(x, i, u, u + c)",                        "sum(sum(at(x, u + i*d + j), j, 0, d), i, 0, c//d)", "divides(x, d) and 1 < d and d < c and c % d == 0", "a number is its two digits"),
    Rule("sum-split-multiple", "sum(x, i, 0, v*d)",                          "sum(sum(at(x, i*d + j), j, 0, d), i, 0, v)",    "divides(x, d) and 1 < d", "a number is its two digits"),
    Rule("max-split-range",    "max_over(x, i, u, u + c)",                   "max_over(max_over(at(x, u + i*d + j), j, 0, d), i, 0, c//d)", "divides(x, d) and 1 < d and d < c and c % d == 0", "a number is its two digits"),
    Rule("min-split-range",    "min_over(x, i, u, u + c)",                   "min_over(min_over(at(x, u + i*d + j), j, 0, d), i, 0, c//d)", "divides(x, d) and 1 < d and d < c and c % d == 0", "a number is its two digits"),
    Rule("sum-swap",           "sum(sum(x, j, w, z), i, u, v)",              "sum(sum(at(x, i, j), i, u, v), j, w, z)",       "free(w) and free(z)",  "addends in any order"),
    Rule("sum-from-zero",       "sum(x, i, u, v)",                            "sum(at(x, i + u), i, 0, v - u)",                "vmin(u) < vmax(u) or 0 < vmin(u) or vmax(u) < 0", "the range of each start is one range"),
    Rule("prod-from-zero",      "prod(x, i, u, v)",                           "prod(at(x, i + u), i, 0, v - u)",               "vmin(u) < vmax(u) or 0 < vmin(u) or vmax(u) < 0", "the range of each start is one range"),
    Rule("max-from-zero",       "max_over(x, i, u, v)",                       "max_over(at(x, i + u), i, 0, v - u)",           "vmin(u) < vmax(u) or 0 < vmin(u) or vmax(u) < 0", "the range of each start is one range"),
    Rule("min-from-zero",       "min_over(x, i, u, v)",                       "min_over(at(x, i + u), i, 0, v - u)",           "vmin(u) < vmax(u) or 0 < vmin(u) or vmax(u) < 0", "the range of each start is one range"),
    Rule("prod-swap",           "prod(prod(x, j, w, z), i, u, v)",            "prod(prod(at(x, i, j), i, u, v), j, w, z)",     "free(w) and free(z)",   "values in any order"),
    Rule("max-swap",            "max_over(max_over(x, j, w, z), i, u, v)",    "max_over(max_over(at(x, i, j), i, u, v), j, w, z)","free(w) and free(z)",   "values in any order"),
    Rule("min-swap",            "min_over(min_over(x, j, w, z), i, u, v)",    "min_over(min_over(at(x, i, j), i, u, v), j, w, z)","free(w) and free(z)",   "values in any order"),
]
