// Halide's simplifier behind a C interface: terms are handles into a table, built and taken apart one node at a time.
//
// Compiled and loaded by halide_driver.py. Halide's division is Euclidean, which is floor division for the positive
// divisors that the driver gives it; integers are 64 bits wide, for which Halide assumes no
// overflow.

#include <Halide.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace Halide;
using namespace Halide::Internal;

namespace {

std::vector<Expr> terms;
std::vector<Expr> facts;
Scope<Interval> bounds;
const Type index_type = Int(64);
std::string text;

int keep(Expr e) {
    terms.push_back(std::move(e));
    return static_cast<int>(terms.size()) - 1;
}

// One operator of Halide as (kind, operands); kinds are the names of Halide's IR nodes.
struct Parts {
    std::string kind;
    std::vector<Expr> operands;
};

template<typename Op>
bool binary(const Expr &e, const char *kind, Parts &parts) {
    const Op *op = e.as<Op>();
    if (op) {
        parts = {kind, {op->a, op->b}};
    }
    return op != nullptr;
}

Parts take_apart(const Expr &e) {
    Parts parts;
    if (const auto value = as_const_int(e)) {
        return {"const " + std::to_string(*value), {}};
    } else if (const auto value = as_const_uint(e)) {
        return {"bool " + std::to_string(*value), {}};
    } else if (const Variable *variable = e.as<Variable>()) {
        return {"var " + variable->name, {}};
    } else if (const Not *op = e.as<Not>()) {
        return {"not", {op->a}};
    } else if (const Select *op = e.as<Select>()) {
        return {"where", {op->condition, op->true_value, op->false_value}};
    } else if (const Call *op = e.as<Call>()) {
        return {"call " + op->name, op->args};
    } else if (binary<Add>(e, "add", parts) || binary<Sub>(e, "sub", parts) || binary<Mul>(e, "mul", parts) ||
               binary<Div>(e, "floordiv", parts) || binary<Mod>(e, "mod", parts) || binary<Min>(e, "min", parts) ||
               binary<Max>(e, "max", parts) || binary<EQ>(e, "eq", parts) || binary<NE>(e, "ne", parts) ||
               binary<LT>(e, "lt", parts) || binary<LE>(e, "le", parts) || binary<GT>(e, "gt", parts) ||
               binary<GE>(e, "ge", parts) || binary<And>(e, "and", parts) || binary<Or>(e, "or", parts)) {
        return parts;
    }
    return {"unknown", {}};
}

Expr build(const std::string &kind, const std::vector<Expr> &x) {
    if (kind == "add") return Add::make(x[0], x[1]);
    if (kind == "sub") return Sub::make(x[0], x[1]);
    if (kind == "mul") return Mul::make(x[0], x[1]);
    if (kind == "floordiv") return Div::make(x[0], x[1]);
    if (kind == "mod") return Mod::make(x[0], x[1]);
    if (kind == "min") return Min::make(x[0], x[1]);
    if (kind == "max") return Max::make(x[0], x[1]);
    if (kind == "eq") return EQ::make(x[0], x[1]);
    if (kind == "ne") return NE::make(x[0], x[1]);
    if (kind == "lt") return LT::make(x[0], x[1]);
    if (kind == "le") return LE::make(x[0], x[1]);
    if (kind == "and") return And::make(x[0], x[1]);
    if (kind == "or") return Or::make(x[0], x[1]);
    if (kind == "not") return Not::make(x[0]);
    if (kind == "where") return Select::make(x[0], x[1], x[2]);
    return Expr();
}

}  // namespace

extern "C" {

void peer_reset() {
    terms.clear();
    facts.clear();
    bounds = Scope<Interval>();
}

int peer_const(int64_t value) {
    return keep(make_const(index_type, value));
}

int peer_bool(int value) {
    return keep(make_bool(value != 0));
}

int peer_variable(const char *name, int64_t low, int64_t high) {
    bounds.push(name, Interval(make_const(index_type, low), make_const(index_type, high)));
    return keep(Variable::make(index_type, name));
}

// The handle of an operation, or -1 if Halide has none of that name.
int peer_apply(const char *kind, const int *operands, int count) {
    std::vector<Expr> x;
    for (int i = 0; i < count; i++) {
        x.push_back(terms[operands[i]]);
    }
    Expr e = build(kind, x);
    return e.defined() ? keep(e) : -1;
}

void peer_assume(const int *handles, int count) {
    facts.clear();
    for (int i = 0; i < count; i++) {
        facts.push_back(terms[handles[i]]);
    }
}

// Simplify under the bounds and the assumptions, until nothing changes or the rounds are used up.
int peer_simplify(int handle, int rounds) {
    Expr e = terms[handle];
    for (int round = 0; round < rounds; round++) {
        Expr next = simplify(e, true, bounds, Scope<ModulusRemainder>::empty_scope(), facts);
        bool done = equal(next, e);
        e = next;
        if (done) {
            break;
        }
    }
    return keep(e);
}

// Whether Halide can show that a term is positive.
int peer_positive(int handle) {
    return can_prove(terms[handle] > make_const(index_type, 0), bounds);
}

// What identifies a term: equal addresses are equal terms.
const void *peer_address(int handle) {
    return terms[handle].get();
}

// "kind" or "kind value", then a line per operand: its handle.
const char *peer_parts(int handle) {
    Parts parts = take_apart(terms[handle]);
    text = parts.kind;
    for (const Expr &operand : parts.operands) {
        text += "\n" + std::to_string(keep(operand));
    }
    return text.c_str();
}
}
