"""Comparisons. ``<=`` and ``!=`` are written with ``<``, ``==`` and ``not``.

Letters a b c d k m n match integer literals; x y z match anything; p q conditions.
"""

from eqsat.egraph.rule import Rule

COMPARE = [
    #    name                 left                  right                      guard                       reason
    Rule("lt-always",         "x < y",              "True",                    "vmax(x) < vmin(y)",        "the ranges do not meet", source="D50"),
    Rule("lt-never",          "x < y",              "False",                   "vmin(x) >= vmax(y)",       "the ranges do not meet", source="D50"),
    Rule("lt-self",           "x < x",              "False",                   why="nothing is below itself"),
    Rule("eq-never-below",    "x == y",             "False",                   "vmax(x) < vmin(y)",        "the ranges do not meet"),
    Rule("eq-self",           "x == x",             "True",                    why="equal terms are equal"),
    Rule("eq-commutes",       "x == y",             "y == x",                  why="equality is symmetric", source="A78"),
    Rule("not-lt",            "not x < y",          "y <= x",                  both_ways=True, why="the order is total"),

    Rule("literal-lt-lift",   "d < x + c",          "d - c < x",               why="both sides less c", source="D49"),
    Rule("lt-lift-offset",    "x + c < y",          "x < y - c",               why="both sides less c", source="D49"),
    Rule("lt-cancel",         "x + z < y + z",      "x < y",                   why="both sides less z"),
    Rule("lt-cancel-left",    "x + y < x",          "y < 0",                   why="both sides less x"),
    Rule("lt-cancel-right",   "x < x + y",          "0 < y",                   why="both sides less x"),
    Rule("lt-lift-term",      "y*d + x < z",        "x < y*(-d) + z",          "d < 0",                    "a subtracted term goes to the other side"),
    Rule("lt-lift-negative",  "x*d < c",            "(-c)//(-d) < x",          "d < 0",                    "dividing by a negative number turns the order", source="C9 D49", modulo_theory=True),
    Rule("negative-lt",       "c < x*d",            "x < (-c - 1)//(-d) + 1",  "d < 0",                    "dividing by a negative number turns the order", source="C9 D49", modulo_theory=True),
    Rule("eq-lift-negative",  "x*d == c",           "x == c//d",               "d < 0 and c % d == 0",     "dividing by a negative number", modulo_theory=True),
    Rule("eq-lift-literal",   "x + c == d",         "x == d - c",              why="both sides less c", source="D49"),
    Rule("eq-cancel",         "x + z == y + z",     "x == y",                  why="both sides less z"),
    Rule("eq-cancel-zero",    "x + y == x",         "y == 0",                  why="both sides less x"),

    Rule("lt-scaled",         "x + y < d",          "x//factor(x) < (d - 1 - vmin(y))//factor(x) + 1",
         "factor(x) > 1 and (d - 1 - vmin(y))//factor(x) == (d - 1 - vmax(y))//factor(x)", "y never decides"),
    Rule("scaled-lt",         "d < x + y",          "(d - vmin(y))//factor(x) < x//factor(x)",
         "factor(x) > 1 and (d - vmin(y))//factor(x) == (d - vmax(y))//factor(x)", "y never decides"),
    Rule("lt-factor",         "x < d",              "x//factor(x) < (d - 1)//factor(x) + 1", "factor(x) > 1", "a common divisor cancels", source="D49", covered_by="lt-scaled"),
    Rule("factor-lt",         "d < x",              "d//factor(x) < x//factor(x)", "factor(x) > 1", "a common divisor cancels", source="D49", covered_by="scaled-lt"),
    Rule("eq-scaled",         "x + y == d",         "x//factor(x) == (d - vmin(y))//factor(x) and y == d - (d - vmin(y))//factor(x)*factor(x)",
         "factor(x) > 1 and (d - vmin(y))//factor(x) == (d - vmax(y))//factor(x)", "quotient and remainder are unique"),
    Rule("eq-factor",         "x == d",             "x//factor(x) == d//factor(x)", "factor(x) > 1 and d % factor(x) == 0", "a common divisor cancels", source="D49"),
    Rule("eq-incongruent",    "x == d",             "False",                   "(d - remainder(x)) % modulus(x) != 0", "x never meets d modulo modulus(x)"),
    Rule("eq-incongruent-terms", "x == y",          "False",                   "modulus(x) % modulus(y) == 0 and (remainder(x) - remainder(y)) % modulus(y) != 0",
         "x and y never meet modulo modulus(y)"),
    Rule("lt-scales",         "x*c < y*c",          "x < y",                   "c > 0",                    "a common positive factor cancels"),
    Rule("lt-scales-negative", "x*c < y*c",         "y < x",                   "c < 0",                    "a negative factor turns the order"),
    Rule("lt-div",            "x//d < c",           "x < c*d",                 "d > 0",                    "the bucket ends at c*d", source="D49"),
    Rule("div-lt",            "c < x//d",           "(c + 1)*d - 1 < x",       "d > 0",                    "the next bucket starts at (c+1)*d", source="D49"),
    Rule("eq-div",            "x//d == c",          "c*d - 1 < x and x < c*d + d", "d > 0",                "the bucket of c", source="D49"),
    Rule("eq-div-before",     "x//d == (x + c)//d",  "0 < x % d",               "c == -1 and d > 0",        "one before a multiple of d another bucket ends", modulo_theory=True),
    Rule("eq-div-after",      "x//d == (x + c)//d",  "x % d < d - 1",           "c == 1 and d > 0",         "at the end of a bucket the next one begins", modulo_theory=True),
    Rule("eq-or-next",        "x == c or x == d",    "x // 2 == c // 2",        "d == c + 1 and c % 2 == 0", "two numbers that are one pair", modulo_theory=True),
    Rule("multiple-above-power", "x % c < 1",       "x//(c - 1) == x%(c - 1)", "1 - c <= vmin(x) and vmax(x) < c*(c - 1) and 1 < c and c - 1 & c - 2 == 0", "x is x//(c - 1)*c + x%(c - 1) - x//(c - 1)", modulo_theory=True),

    Rule("lt-and-lt",         "x < c and x < d",    "x < min(c, d)",           why="the tighter bound", source="D50"),
    Rule("lt-or-lt",          "x < c or x < d",     "x < max(c, d)",           why="the looser bound"),
    Rule("gt-and-gt",         "c < x and d < x",    "max(c, d) < x",           why="the tighter bound", source="D50"),
    Rule("gt-or-gt",          "c < x or d < x",     "min(c, d) < x",           why="the looser bound"),
    Rule("lt-and-gt",         "x < c and d < x",    "False",                   "c <= d + 1",               "no integer lies between", source="D50"),
    Rule("lt-or-gt",          "x < c or d < x",     "True",                    "d < c",                    "every integer is on one side"),
    Rule("between-is-eq",     "x < c and d < x",    "x == d + 1",              "c == d + 2",               "one integer lies between"),
    Rule("eq-and-lt",         "x == c and x < d",   "x == c",                  "c < d",                    "equality decides"),
    Rule("eq-and-not-lt",     "x == c and x < d",   "False",                   "c >= d",                   "equality decides"),
    Rule("eq-and-gt",         "x == c and d < x",   "x == c",                  "d < c",                    "equality decides"),
    Rule("eq-and-not-gt",     "x == c and d < x",   "False",                   "d >= c",                   "equality decides"),
    Rule("eq-and-eq",         "x == c and x == d",  "False",                   "c != d",                   "one value at a time"),
    Rule("eq-or-eq",          "x == c or x == d",    "x % (d - c) == c",   "0 <= c and 2*c < d and 2*c - d < vmin(x) and vmax(x) < 2*d - c and d - c & d - c - 1 == 0", "of one remainder there are no others", modulo_theory=True),
    Rule("eq-or-lt",          "x == c or x < d",    "x < d",                   "c < d",                    "the order covers it", modulo_theory=True),
    Rule("eq-extends-lt",     "x == c or x < c",    "x < c + 1",               why="the next integer"),
]
