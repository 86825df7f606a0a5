"""The eight rules of fold_divmod_general, each for // and for %, as rules on two addends that compose to any sum.

Letters a b c d k m n match integer literals; x y z match anything. ``factor(x)`` is a known divisor of x.
"""

from eqsat.egraph.rule import Rule

FOLDING = [
    # 1 cancel_divmod: the four corner quotients agree
    Rule("cancel-div-symbolic", "x // y", "vmin(x)//vmin(y)",
         "vmin(y)*vmax(y) > 0 and vmin(x)//vmin(y) == vmax(x)//vmax(y) and vmin(x)//vmax(y) == vmax(x)//vmin(y)",
         "the quotient is monotone in x and in y, and its four corners agree", source="A32 A33"),
    Rule("cancel-mod-symbolic", "x % y", "x - y*(vmin(x)//vmin(y))",
         "vmin(y)*vmax(y) > 0 and vmin(x)//vmin(y) == vmax(x)//vmax(y) and vmin(x)//vmax(y) == vmax(x)//vmin(y)",
         "x%y = x - y*(x//y)", source="A32 A33"),
    Rule("two-periods-div-symbolic", "x // y", "where(x < y*(vmin(x)//vmax(y) + 1), vmin(x)//vmax(y), vmin(x)//vmax(y) + 1)",
         "vmin(y) < vmax(y) and 0 <= vmin(x) and vmin(y) > 0 and vmax(x)//vmin(y) == vmin(x)//vmax(y) + 1", "the corner quotients are neighbours", modulo_theory=True),
    Rule("two-periods-mod-symbolic", "x % y", "x - where(x < y*(vmin(x)//vmax(y) + 1), y*(vmin(x)//vmax(y)), y*(vmin(x)//vmax(y) + 1))",
         "vmin(y) < vmax(y) and 0 <= vmin(x) and vmin(y) > 0 and vmax(x)//vmin(y) == vmin(x)//vmax(y) + 1", "x%y = x - y*(x//y)", modulo_theory=True),
    # 2 remove_nested_mod
    Rule("mod-of-mod", "(x % c) % d", "x % d", "c % d == 0", "x%c differs from x by a multiple of d", source="A34 A35"),
    Rule("mod-of-mod-sum", "(x % c + y) % d", "(x + y) % d", "c % d == 0", "x%c differs from x by a multiple of d", source="A34 A35 E9", covered_by="mod-of-scaled-mod"),
    Rule("mod-of-scaled-mod", "((x % c)*k + y) % d", "(x*k + y) % d", "(c*k) % d == 0", "(x%c)*k differs from x*k by a multiple of d", source="A34 A35"),
    # 3 fold_binary_numerator: a variable with two values makes any function of it linear
    Rule("two-values-div", "(x*a + b) // d", "(x - vmin(x))*((vmax(x)*a + b)//d - (vmin(x)*a + b)//d) + (vmin(x)*a + b)//d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    Rule("two-values-mod", "(x*a + b) % d", "(x - vmin(x))*((vmax(x)*a + b)%d - (vmin(x)*a + b)%d) + (vmin(x)*a + b)%d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    Rule("two-values-scaled-div", "(x*a) // d", "(x - vmin(x))*((vmax(x)*a)//d - (vmin(x)*a)//d) + (vmin(x)*a)//d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    Rule("two-values-scaled-mod", "(x*a) % d", "(x - vmin(x))*((vmax(x)*a)%d - (vmin(x)*a)%d) + (vmin(x)*a)%d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    Rule("two-values-plain-div", "x // d", "(x - vmin(x))*(vmax(x)//d - vmin(x)//d) + vmin(x)//d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    Rule("two-values-plain-mod", "x % d", "(x - vmin(x))*(vmax(x)%d - vmin(x)%d) + vmin(x)%d",
         "vmax(x) == vmin(x) + 1", "the line through the two values", source="A36 A37"),
    # 4 congruence: coefficients modulo d, first into [0, d), then to the closest residue
    Rule("congruent-mod", "(x*c + y) % d", "(x*(c%d) + y) % d", "d > 0 and c % d != 0 and (c >= d or 2*c <= -d)", "c and c%d agree modulo d", source="A38 A39 A40 A42 A58 E8"),
    Rule("congruent-mod-alone", "(x*c) % d", "(x*(c%d)) % d", "d > 0 and c % d != 0 and (c >= d or 2*c <= -d)", "c and c%d agree modulo d", source="A38 A40 A58"),
    Rule("congruent-div", "(x*c + y) // d", "x*(c//d) + (x*(c%d) + y)//d", "d > 0 and c % d != 0 and (c >= d or 2*c <= -d)", "whole multiples leave the floor", source="A38 A39 A41"),
    Rule("congruent-div-alone", "(x*c) // d", "x*(c//d) + (x*(c%d))//d", "d > 0 and c % d != 0 and (c >= d or 2*c <= -d)", "whole multiples leave the floor", source="A38 A41", covered_by="congruent-div"),
    Rule("closest-mod", "(x*c + y) % d", "(x*(c - d) + y) % d", "c < d and d < 2*c", "c - d is closer to 0 than c", source="A38 A40"),
    Rule("closest-div", "(x*c + y) // d", "x + (x*(c - d) + y)//d", "c < d and d < 2*c", "c - d is closer to 0 than c", source="A38 A41"),
    # 5 gcd_with_remainder, and 8 nest_div_by_smallest_factor, which it makes one step
    Rule("gcd-div", "x // d", "(x // gcd(x, d)) // (d // gcd(x, d))", "1 < gcd(x, d) and gcd(x, d) < d", "a common divisor cancels", source="A43 A45 A50 A51 A84 E9"),
    Rule("gcd-mod", "x % d", "(x // gcd(x, d)) % (d // gcd(x, d)) * gcd(x, d)", "1 < gcd(x, d) and gcd(x, d) < d", "a common divisor moves out", source="A44 A45"),
    Rule("gcd-div-rest", "(x + y) // d", "(x//gcd(x, d) + vmin(y)//gcd(x, d)) // (d // gcd(x, d))",
         "1 < gcd(x, d) and gcd(x, d) < d and vmin(y)//gcd(x, d) == vmax(y)//gcd(x, d)", "y stays in one bucket of the common divisor", source="A23 A24 A45 A50 A51 A84"),
    Rule("gcd-mod-rest", "(x + y) % d", "(x//gcd(x, d) + vmin(y)//gcd(x, d)) % (d // gcd(x, d)) * gcd(x, d) + (y - gcd(x, d)*(vmin(y)//gcd(x, d)))",
         "1 < gcd(x, d) and gcd(x, d) < d and vmin(y)//gcd(x, d) == vmax(y)//gcd(x, d)", "y stays in one bucket of the common divisor", source="A44 A45"),
    # 6 divide_by_gcd: a common factor, literal or symbolic
    Rule("cancel-factor-div", "(x*z) // (y*z)", "x // y", why="z cancels", source="A43 A46 A47"),
    Rule("cancel-factor-mod", "(x*z) % (y*z)", "(x % y)*z", why="z moves out", source="A46 A47"),
    Rule("cancel-scaled-div", "(x*z) // (z*c)", "x // c", why="z cancels", source="A43"),
    Rule("cancel-scaled-mod", "(x*z) % (z*c)", "(x % c)*z", why="z moves out", source="A44"),
    Rule("cancel-literal-div", "x // (y*c)", "(x // gcd(x, c)) // (y*(c // gcd(x, c)))", "1 < gcd(x, c)", "a common divisor cancels", source="A46 A47"),
    Rule("cancel-literal-mod", "x % (y*c)", "(x // gcd(x, c)) % (y*(c // gcd(x, c))) * gcd(x, c)", "1 < gcd(x, c)", "a common divisor moves out", source="A46 A47", modulo_theory=True),
    Rule("cancel-literal-mod-rest", "(x + k) % (y*c)", "(x // gcd(x, c)) % (y*(c // gcd(x, c))) * gcd(x, c) + k", "0 < vmin(y) and 0 < c and 0 <= k and k < gcd(x, c)", "a common divisor moves out, and k never carries", source="A46 A47", modulo_theory=True),
    # 7 factor_remainder with a symbolic divisor (for literals: div-multiple and mod-multiple)
    Rule("symbolic-multiple-div", "(x*z + y) // z", "x + y//z", why="x*z/z is whole", source="A48 A49"),
    Rule("symbolic-multiple-mod", "(x*z + y) % z", "y % z", why="x*z is a multiple of z", source="A48 A49"),
    Rule("symbolic-unit-div", "(z + y) // z", "y//z + 1", why="z/z is 1", source="A48 A49", covered_by="symbolic-multiples-div"),
    Rule("symbolic-unit-mod", "(z + y) % z", "y % z", why="z is a multiple of z", source="A48 A49", covered_by="symbolic-multiples-mod"),
    Rule("symbolic-multiples-div", "(z*c + y) // z", "y//z + c", why="z*c/z is whole", source="A48 A49"),
    Rule("symbolic-multiples-mod", "(z*c + y) % z", "y % z", why="z*c is a multiple of z", source="A48 A49"),
    Rule("symbolic-scaled-div", "(x*z + y) // (z*c)", "x//c + y//(z*c)", "gcd(x, c) == c", "x*z is a multiple of z*c", source="A48 A49"),
    Rule("symbolic-scaled-mod", "(x*z + y) % (z*c)", "y % (z*c)", "gcd(x, c) == c", "x*z is a multiple of z*c", source="A48 A49"),
    Rule("symbolic-whole-div", "(x*z) // z", "x", why="x*z/z is x", source="A47 A56"),
    Rule("symbolic-whole-mod", "(x*z) % z", "0", why="x*z is a multiple of z", source="A47"),
    Rule("symbolic-self-div", "z // z", "1", why="z/z is 1", source="A47"),
    Rule("symbolic-self-mod", "z % z", "0", why="z is a multiple of z", source="A47"),
    Rule("symbolic-below-div", "x // y", "0", "0 <= vmin(x) and x < y", "0 <= x < y"),
    Rule("symbolic-below-mod", "x % y", "x", "0 <= vmin(x) and x < y", "0 <= x < y"),
    Rule("symbolic-two-periods-div", "x // y", "where(x < y, 0, 1)", "vmin(y) < vmax(y) and 0 <= vmin(x) and x < y + y", "x lies in one period or in the next", modulo_theory=True),
    Rule("symbolic-two-periods-mod", "x % y", "x - where(x < y, 0, y)", "vmin(y) < vmax(y) and 0 <= vmin(x) and x < y + y", "x lies in one period or in the next", modulo_theory=True),
    Rule("symbolic-period-below-div", "x // y", "where(x < 0, -1, 0)", "vmin(y) < vmax(y) and vmin(x) < 0 and vmax(x) <= vmax(y) and 0 < y + x + 1 and x < y", "x lies in one period or in the one below", modulo_theory=True),
    Rule("symbolic-period-below-mod", "x % y", "x + where(x < 0, y, 0)", "vmin(y) < vmax(y) and vmin(x) < 0 and vmax(x) <= vmax(y) and 0 < y + x + 1 and x < y", "x lies in one period or in the one below", modulo_theory=True),
]
