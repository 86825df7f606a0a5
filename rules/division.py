"""Quotients of quotients, exact quotients, negative divisors, truncating division and shifts.

Letters a b c d k m n match integer literals (s a shift amount); x y z match anything.
"""

from eqsat.egraph.rule import Rule

DIVISION = [
    #    name                  left                right                guard                             reason
    Rule("div-one",            "x // 1",           "x",                 why="x/1 is x"),
    Rule("div-div",            "(x // c) // d",    "x // (c*d)",        "d > 0",                          "floors compose if the outer divisor is positive", source="A11 A54 A55 E2", covered_by="div-div-symbolic"),
    Rule("div-div-symbolic",   "(x // y) // z",    "x // (y*z)",        "vmin(z) > 0",                    "floors compose if the outer divisor is positive", source="A11 A54 A55 E2", modulo_theory=True),
    Rule("div-div-literal",    "(x // y) // d",    "x // (y*d)",        "d > 0",                          "floors compose if the outer divisor is positive", source="A54"),
    Rule("div-offset-div",     "(x//c + k) // d",  "(x + c*k) // (c*d)", "d > 0",                         "k whole steps of c go into the floor", source="A14 E1"),
    Rule("div-sum-div",        "(x//c + y) // d",  "(x + y*c) // (c*d)", "d > 0 and vmin(y) < vmax(y)",   "y whole steps of c go into the floor", source="A14"),
    Rule("div-sum-div-symbolic", "(x//y + z) // w",  "(x + z*y) // (y*w)", "vmin(w) > 0 and (vmin(y) < vmax(y) or vmin(w) < vmax(w))", "z whole steps of y go into the floor", source="A14"),
    Rule("div-of-product",     "x // (y*z)",        "(x // y) // z",     "vmin(z) > 0",                    "floors compose if the outer divisor is positive", beside="x // y", source="A10 A11"),
    Rule("div-of-multiple",    "x // (z*c)",        "(x // c) // z",     "vmin(z) > 0",                    "floors compose if the outer divisor is positive", beside="x // c", source="A10 A11"),
    Rule("div-takes-literal",  "(x // y)*k + c",   "((x + y*(c//k)) // y)*k", "c % k == 0 and vmin(y) < vmax(y)", "whole multiples of y enter the floor", modulo_theory=True),
    Rule("div-of-two-values",  "x // y",           "where(y < vmax(y), x//vmin(y), x//vmax(y))", "0 < vmin(y) and vmax(y) == vmin(y) + 1", "y has two values", modulo_theory=True),
    Rule("div-ceiling",        "x//d + min(x % d, c)", "(x + (d - 1)) // d", "c == 1 and d > 0",            "what is left is rounded up", modulo_theory=True),
    Rule("div-difference",     "(x + c)//d - x//d", "where(x % d < d - c, 0, 1)", "0 < c and c < d",       "c steps on, a bucket ends or none does", modulo_theory=True),
    Rule("div-negated",        "-(x // d)",        "(d - 1 - x) // d",  "d > 0 and vmin(x) < 0 and vmax(x) < d", "the floor of a negative is a ceiling", modulo_theory=True),
    Rule("div-negated-offset", "-((x + c) // d)",  "(-x) // d",         "d > 0 and c == d - 1",           "the floor of a negative is a ceiling", modulo_theory=True),
    Rule("div-of-mod",         "(x % c) // d",     "(x // d) % (c//d)", "d > 0 and c > 0 and c % d == 0", "the upper digits of x%c"),
    Rule("div-of-mod-symbolic", "(x % (y*z)) // z",  "(x // z) % y",      "vmin(y) > 0",                    "the upper digits of x%(y*z)", modulo_theory=True),
    Rule("symbolic-mod-div",   "(x % y) // y",     "0",                 why="a remainder is smaller than its divisor"),
    Rule("symbolic-mod-mod",   "(x % y) % y",      "x % y",             why="a remainder is its own remainder"),
    Rule("exact-scale",        "(x*c) // d",       "x*(c//d)",          "c % d == 0",                     "d divides c", source="A56 A57"),
    Rule("div-negative",       "x // d",           "(-x) // (-d)",      "d < 0",                          "a fraction's sign may move"),
    Rule("mod-negative",       "x % d",            "-((-x) % (-d))",    "d < 0",                          "a remainder has the sign of its divisor"),
    Rule("tdiv-below-zero",    "tdiv(x, d)",       "-((-x) // d)",      "vmax(x) <= 0 and d > 0",         "truncation is ceiling below zero", source="A15 A28 A52"),
    Rule("tdiv-negative",      "tdiv(x, d)",       "-tdiv(x, -d)",      "d < 0",                          "truncation is symmetric"),
    Rule("tdiv-negated",       "-tdiv(x, d)",      "tdiv(x, -d)",       why="truncation is symmetric", modulo_theory=True),
    Rule("tdiv-of-negated",    "tdiv(-x, d)",      "tdiv(x, -d)",       why="truncation is symmetric", modulo_theory=True),
    Rule("tdiv-exact",         "tdiv(x, d)",       "x // d",            "gcd(x, d) == d",                 "nothing to round"),
    Rule("tdiv-same-sign",     "tdiv(x, y)",       "x // y",            "vmin(x) >= 0 and vmin(y) > 0",   "truncation is floor above zero", source="A15 A28 A52"),
    Rule("tdiv-of-maximum",    "tdiv(x, d)",       "max(x, 0) // d",    "d > 0 and -d < vmin(x)",         "only what is less than d below zero is rounded up", modulo_theory=True),
    Rule("tdiv-to-maximum",    "tdiv(x, d)",       "max(x // d, 0)",    "d > 0 and -d < vmin(x)",         "only what is less than d below zero is rounded up", modulo_theory=True),
    Rule("tdiv-by-floor",      "tdiv(x, d)",       "(x + where(x < 0, d - 1, 0)) // d", "d > 1 and d & d - 1 == 0 and vmin(x) <= -d and 0 < vmax(x)", "what is below zero is rounded up", modulo_theory=True),
    Rule("tmod-below-zero",    "tmod(x, d)",       "-((-x) % d)",       "vmax(x) <= 0 and d > 0",         "the remainder has the sign of x", source="A52"),
    Rule("tmod-negative",      "tmod(x, d)",       "tmod(x, -d)",       "d < 0",                          "the divisor's sign does not matter", modulo_theory=True),
    Rule("tmod-exact",         "tmod(x, d)",       "0",                 "gcd(x, d) == d",                 "nothing remains"),
    Rule("tmod-same-sign",     "tmod(x, y)",       "x % y",             "vmin(x) >= 0 and vmin(y) > 0",   "truncation is floor above zero", source="A52"),
    Rule("tmod-to-minimum",    "tmod(x, d)",       "min(x, x % d)",     "d > 0 and -d < vmin(x)",         "a negative x is its own remainder", modulo_theory=True),
    Rule("tmod-core",          "tdiv(x, n)*n + tmod(x, n)", "x",         why="x = tdiv(x, n)*n + tmod(x, n)"),
    Rule("tmod-core-open",     "tdiv(x, n)*c + x*k", "tmod(x, n)*k",     "c == -(n*k)",                    "tmod(x, n) = x - tdiv(x, n)*n", modulo_theory=True),
    Rule("tmod-inner",         "tdiv(x, b)*c + tdiv(x, a)*k", "tmod(tdiv(x, a), b//a)*k", "b % a == 0 and c == -(b//a*k)", "tdiv(x, b) is tdiv(tdiv(x, a), b//a)", modulo_theory=True),
    Rule("tmod-of-tmod",       "tmod(tmod(x, c), d)", "tmod(x, d)",     "c % d == 0",                     "the remainder of |x|, with the sign of x", modulo_theory=True),
    Rule("tdiv-of-tmod",       "tdiv(tmod(x, c), d)", "tmod(tdiv(x, d), c//d)", "c % d == 0",         "the upper digits of |x|, with the sign of x", modulo_theory=True),
    Rule("tmod-is-zero",       "tmod(x, y) == 0",  "x % y == 0",        why="y divides x", modulo_theory=True),
    Rule("shl-is-mul",         "shl(x, s)",        "x * shl(1, s)",     why="a left shift multiplies"),
    Rule("shr-is-div",         "shr(x, s)",        "x // shl(1, s)",    why="an arithmetic right shift is a floor division"),
]
