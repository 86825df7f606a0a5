from eqsat.expr import Expr, var, const
