"""The div-mod identity x = (x//n)*n + x%n and what follows from it.

Letters a b c d k m n match integer literals; x y z match anything. Sums match in any order and association.
"""

from eqsat.egraph.rule import Rule

DIVMOD = [
    #    name                 left                          right            guard                         reason
    Rule("mod-core",          "x % n + (x // n)*n",         "x",             why="x = (x//n)*n + x%n", source="A8 A9 A12 A13 A18 A82 A83 A87 D48"),
    Rule("mod-core-symbolic", "x % y + (x // y)*y",         "x",             why="x = (x//y)*y + x%y", source="A8 A9"),
    Rule("mod-core-unit",     "(x // n)*d + x",             "x % n",         "d == -n",                    "x%n = x - (x//n)*n", source="A9"),
    Rule("mod-core-open",     "(x // y)*y*-1 + x",          "x % y",         why="x%y = x - (x//y)*y", source="A9", modulo_theory=True),
    Rule("mod-core-offset",   "((x + k) // n)*d + x",       "(x + k)%n - k", "d == -n",                    "the identity of x + k, less k", covered_by="mod-part"),
    Rule("mod-scaled",        "(x % n)*c + (x // n)*d",     "x*c",           "d == n*c",                   "c times the identity", source="A12 D48", covered_by="mod-core"),
    Rule("mod-part",          "(x // n)*c + x*k",           "(x % n)*k + (x // n)*(c + n*k)", "(c + n*k)*(c + n*k) < c*c", "k times the identity, in a sum with any multiple of the quotient", source="A12", modulo_theory=True),
    Rule("mod-part-inner",    "(x // b)*c + (x // a)*k",    "(x//a % (b//a))*k + (x // b)*(c + k*(b//a))", "1 < a and a < b and b % a == 0 and ((c + k*(b//a))*(c + k*(b//a)) < c*c or c + k*(b//a) == b)", "x//b is (x//a)//(b//a)", modulo_theory=True),
    Rule("mod-core-open-scaled", "(x // (y*c))*y*d + x",    "x % (y*c)",     "d == -c",                    "the identity for a divisor with a literal factor", modulo_theory=True),
    Rule("mod-composed",      "(x//a) % c + (x//b)*c",      "x // a",        "c > 0 and a*c == b",         "x//b is (x//a)//c", source="A10"),
    Rule("mod-digits",        "(x//a % c)*a + x % a",       "x % (a*c)",     "c > 0",            "two digits of x are one digit of a larger base"),
    Rule("mod-digits-scaled", "(x//a % c)*d + (x % a)*k",   "(x % (a*c))*k", "c > 0 and d == a*k", "two digits of x are one digit of a larger base", covered_by="mod-digits"),
    Rule("mod-digits-inner",  "(x//b % c)*d + x//a % k",    "(x//a) % (k*c)", "k > 0 and c > 0 and b == a*k and d == k", "two digits of x//a are one of a larger base", modulo_theory=True),
    Rule("mod-by-quotient",   "x % d",                         "x - x//d*d",    "d & d - 1 != 0",              "the identity, where the quotient is there", beside="x // d", modulo_theory=True, needs_theory=True),
]
