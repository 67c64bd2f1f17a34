// redc lift, the door: Clang's nodes become the structs of grammar/lift_tree.h. What has no place there is refused here, with
// what to write instead.
#include "compiler/clang_front.h"

// ir.h has functions of the names of structs, as C may.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
extern "C" {
#include "grammar/lift_tree.h"
#include "red_kernel_text.h"
#include "red_text.h"
}
#pragma GCC diagnostic pop

#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/Stmt.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Lex/LexDiagnostic.h"
#include "clang/Lex/Pragma.h"
#include "clang/Lex/Preprocessor.h"

#include <map>
#include <optional>
#include <string>

using namespace clang;

namespace {

const char ANNOTATION[] = "red_kernel";

struct pragma_place {
  SourceLocation where;
  std::string text;
  struct range range;
};

// Gathers `#pragma red ...`.
class pragma_handler : public PragmaHandler {
public:
  pragma_handler(std::vector<pragma_place> &into, clang_places &where)
      : PragmaHandler("red"), pragmas(into), places(where) {}
  void HandlePragma(Preprocessor &pp, PragmaIntroducer, Token &first) override {
    SourceLocation begin = first.getLocation(), end = begin;
    std::string text;
    Token token;
    for (pp.Lex(token); token.isNot(tok::eod); pp.Lex(token)) {
      if (token.hasLeadingSpace() && !text.empty()) text += ' ';
      text += pp.getSpelling(token);
      end = token.getLocation();
    }
    pragmas.push_back({begin, text, places.range(SourceRange(begin, end))});
  }

private:
  std::vector<pragma_place> &pragmas;
  clang_places &places;
};

bool is_marked(const FunctionDecl *f) {
  for (const auto *a : f->specific_attrs<AnnotateAttr>())
    if (a->getAnnotation() == ANNOTATION) return true;
  return false;
}

// Functions of the C library and of std:: by the operation that they are. Without the f or l of their name.
const std::map<std::string, enum op> &functions() {
  static const std::map<std::string, enum op> table = {
      {"exp", OP_EXP},     {"exp2", OP_EXP2},   {"log", OP_LOG},   {"log2", OP_LOG2},   {"sqrt", OP_SQRT},   {"sin", OP_SIN},
      {"cos", OP_COS},     {"tanh", OP_TANH},   {"erf", OP_ERF},   {"pow", OP_POW},     {"fma", OP_FMA},     {"floor", OP_FLOOR},
      {"ceil", OP_CEIL},   {"round", OP_ROUND}, {"trunc", OP_TRUNC}, {"fabs", OP_ABS},  {"abs", OP_ABS},     {"labs", OP_ABS},
      {"llabs", OP_ABS},   {"fmin", OP_FMIN},   {"fmax", OP_FMAX}, {"isnan", OP_ISNAN}, {"isinf", OP_ISINF}, {"isinf_sign", OP_ISINF},
  };
  return table;
}

// One function.
class reader {
public:
  reader(struct diag *messages, clang_places &where, ASTContext &context, host_function *into)
      : diag(messages), places(where), ast(context), function(into) {}

  void read(const FunctionDecl *f) {
    if (!f->getReturnType()->isVoidType())
      refuse(f->getReturnTypeSourceRange(), "a kernel returns nothing",
             "make the result an output parameter: an array of one element, " + f->getNameAsString() + "(..., float result[1])");
    if (const auto *m = dyn_cast<CXXMethodDecl>(f); m && m->isInstance())
      refuse(f->getSourceRange(), "a member function has a hidden parameter", "make it static, or a function of its own");
    for (const ParmVarDecl *p : f->parameters()) read_parameter(p);
    if (!function->is_refused) read_body(f->getBody(), &function->body);
  }

private:
  // ---- Refusals

  void refuse(SourceRange where, const std::string &reason, const std::string &advice = "") {
    refuse_at(places.range(where), reason, advice);
  }
  void refuse_at(struct range where, const std::string &reason, const std::string &advice = "") {
    diag_error(diag, ERROR_LIFT, where, "'%s' is not lifted: %s", function->name, reason.c_str());
    if (!advice.empty()) diag_note(diag, range{}, "%s", advice.c_str());
    function->is_refused = true;
  }

  // ---- Types

  // The type of a value, or nothing.
  std::optional<enum type> type_of(QualType q) {
    q = q.getCanonicalType().getUnqualifiedType();
    if (const auto *e = q->getAs<EnumType>()) q = e->getDecl()->getIntegerType().getCanonicalType();
    const auto *b = q->getAs<BuiltinType>();
    if (!b) return std::nullopt;
    if (b->isBooleanType()) return TYPE_BOOL;
    if (b->isInteger()) {
      bool is_signed = b->isSignedInteger();
      switch (ast.getTypeSize(q)) {
      case 8: return is_signed ? TYPE_I8 : TYPE_U8;
      case 16: return is_signed ? TYPE_I16 : TYPE_U16;
      case 32: return is_signed ? TYPE_I32 : TYPE_U32;
      case 64: return is_signed ? TYPE_I64 : TYPE_U64;
      default: return std::nullopt;
      }
    }
    switch (b->getKind()) {
    case BuiltinType::Float: return TYPE_F32;
    case BuiltinType::Double: return TYPE_F64;
    case BuiltinType::Half:
    case BuiltinType::Float16: return TYPE_F16;
    case BuiltinType::BFloat16: return TYPE_BF16;
    default: return std::nullopt;
    }
  }

  std::optional<enum type> type_or_refuse(QualType q, SourceRange where) {
    auto type = type_of(q);
    if (!type) refuse(where, "type '" + q.getAsString() + "' has no counterpart", "the types are bool, integers of 8 to 64 bits, float, double, _Float16 and __bf16");
    return type;
  }

  // ---- Building

  template <class T> T *make() { return static_cast<T *>(arena_alloc(diag->arena, sizeof(T))); }
  host_expr *expr(host_expr_kind kind, enum type type, SourceRange where) {
    host_expr *e = make<host_expr>();
    e->kind = kind;
    e->type = type;
    e->range = places.range(where);
    return e;
  }
  host_expr *integer(enum type type, int64_t value, SourceRange where) {
    host_expr *e = expr(HOST_INT, type, where);
    e->integer = value;
    return e;
  }
  host_expr *operation(enum op op, enum type type, SourceRange where, std::initializer_list<host_expr *> args) {
    host_expr *e = expr(HOST_OP, type, where);
    e->op = op;
    for (host_expr *a : args) list_push(diag->arena, &e->args, a);
    return e;
  }
  host_expr *cast(enum type type, host_expr *a, SourceRange where) {
    if (a->type == type) return a;
    host_expr *e = expr(HOST_CAST, type, where);
    list_push(diag->arena, &e->args, a);
    return e;
  }
  host_expr *select(host_expr *c, host_expr *a, host_expr *b, SourceRange where) {
    host_expr *e = expr(HOST_SELECT, a->type, where);
    for (host_expr *x : {c, a, b}) list_push(diag->arena, &e->args, x);
    return e;
  }
  host_stmt *stmt(host_stmt_kind kind, SourceRange where) {
    host_stmt *s = make<host_stmt>();
    s->kind = kind;
    s->range = places.range(where);
    return s;
  }

  // ---- Parameters

  host_var *variable(const VarDecl *d, enum type type) {
    host_var *v = make<host_var>();
    v->name = arena_strdup(diag->arena, d->getNameAsString().c_str());
    v->range = places.range(d->getLocation());
    v->type = type;
    variables[d->getCanonicalDecl()] = v;
    return v;
  }

  // Takes array types apart: `q` is what an index leads to. False after a refusal.
  bool read_dimensions(host_var *v, QualType q, SourceRange where) {
    while (const ArrayType *array = ast.getAsArrayType(q)) {
      host_expr *bound = nullptr;
      if (const auto *c = dyn_cast<ConstantArrayType>(array)) {
        bound = integer(TYPE_I64, static_cast<int64_t>(c->getSize().getZExtValue()), where);
      } else if (const auto *variable_array = dyn_cast<VariableArrayType>(array); variable_array && variable_array->getSizeExpr()) {
        bound = value(variable_array->getSizeExpr());
        if (!bound) return false;
      } else if (v->dims.count) {
        refuse(where, "a bound of array '" + std::string(v->name) + "' is missing", "write the bound as a parameter: " + std::string(v->name) + "[n][m]");
        return false;
      }
      if (!bound) v->is_pointer = true;
      list_push(diag->arena, &v->dims, bound);
      q = array->getElementType();
    }
    auto type = type_or_refuse(q, where);
    if (type) v->type = *type;
    return type.has_value();
  }

  void read_parameter(const ParmVarDecl *p) {
    QualType q = p->getOriginalType();
    SourceRange where = p->getSourceRange();
    if (p->getNameAsString().empty()) return;
    if (q.isVolatileQualified()) return refuse(where, "'volatile' promises accesses one by one", "take it away");
    host_var *v = variable(p, TYPE_I32);
    v->is_parameter = true;
    list_push(diag->arena, &function->parameters, v);
    if (const auto *reference = q->getAs<ReferenceType>()) {
      if (!reference->getPointeeType()->isConstantArrayType())
        return refuse(where, "parameter '" + std::string(v->name) + "' is a reference", "take arrays, pointers to elements, and scalars by value");
      v->is_array = true;
      read_dimensions(v, reference->getPointeeType(), where);
      return;
    }
    if (ast.getAsArrayType(q)) {
      v->is_array = true;
      if (const auto *d = q->getAs<DecayedType>()) q = d->getOriginalType();
      v->is_restrict = p->getType().isRestrictQualified();
      read_dimensions(v, q, where);
      return;
    }
    if (const auto *decayed = dyn_cast<DecayedType>(q.getTypePtr())) {
      v->is_array = true;
      v->is_restrict = p->getType().isRestrictQualified();
      read_dimensions(v, decayed->getOriginalType(), where);
      return;
    }
    if (q->isPointerType()) {
      QualType to = q->getPointeeType();
      if (to.isVolatileQualified()) return refuse(where, "'volatile' promises accesses one by one", "take it away");
      if (to->isPointerType())
        return refuse(where, "'" + std::string(v->name) + "' is a pointer to pointers", "lay its rows behind one another: float A[n][m], or A[i * m + j]");
      v->is_array = v->is_pointer = true;
      v->is_restrict = q.isRestrictQualified();
      list_push(diag->arena, &v->dims, nullptr);
      read_dimensions(v, to, where);
      return;
    }
    auto type = type_or_refuse(q, where);
    if (!type) return;
    if (*type == TYPE_F16 || *type == TYPE_BF16)
      refuse(where, "scalar '" + std::string(v->name) + "' is of a storage type", "make it float");
    v->type = *type;
  }

  // ---- Expressions

  // The lowest 64 bits: those of an unsigned number above 2^63 are a negative one.
  static int64_t low_bits(const llvm::APSInt &i) { return static_cast<int64_t>(i.extOrTrunc(64).getZExtValue()); }

  host_expr *literal(const Expr *e, enum type type) {
    Expr::EvalResult result;
    if (e->isValueDependent() || e->getType()->isVoidType() || !e->EvaluateAsRValue(result, ast) || result.HasSideEffects) return nullptr;
    if (result.Val.isInt()) {
      return integer(type, low_bits(result.Val.getInt()), e->getSourceRange());
    }
    if (!result.Val.isFloat()) return nullptr;
    llvm::APFloat f = result.Val.getFloat();
    bool loses;
    f.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &loses);
    host_expr *x = expr(HOST_FLOAT, type, e->getSourceRange());
    x->number = f.convertToDouble();
    return x;
  }

  // A condition, of type bool.
  host_expr *condition(const Expr *e) {
    e = e->IgnoreParens();
    if (const auto *c = dyn_cast<ImplicitCastExpr>(e); c && (c->getCastKind() == CK_IntegralToBoolean || c->getCastKind() == CK_FloatingToBoolean))
      e = c->getSubExpr()->IgnoreParens();
    if (const auto *c = dyn_cast<ImplicitCastExpr>(e); c && c->getCastKind() == CK_IntegralCast && c->getSubExpr()->getType()->isBooleanType())
      e = c->getSubExpr()->IgnoreParens();
    if (const auto *u = dyn_cast<UnaryOperator>(e); u && u->getOpcode() == UO_LNot) {
      host_expr *a = condition(u->getSubExpr());
      return a ? operation(OP_NOT, TYPE_BOOL, e->getSourceRange(), {a}) : nullptr;
    }
    if (const auto *b = dyn_cast<BinaryOperator>(e)) {
      if (b->isLogicalOp()) {
        host_expr *l = condition(b->getLHS()), *r = l ? condition(b->getRHS()) : nullptr;
        return r ? operation(b->getOpcode() == BO_LAnd ? OP_AND : OP_OR, TYPE_BOOL, e->getSourceRange(), {l, r}) : nullptr;
      }
      if (b->isComparisonOp() && b->getOpcode() != BO_Cmp) {
        host_expr *l = value(b->getLHS()), *r = l ? value(b->getRHS()) : nullptr;
        if (!r) return nullptr;
        enum op op = b->getOpcode() == BO_LT   ? OP_LT
                     : b->getOpcode() == BO_LE ? OP_LE
                     : b->getOpcode() == BO_GT ? OP_GT
                     : b->getOpcode() == BO_GE ? OP_GE
                     : b->getOpcode() == BO_EQ ? OP_EQ
                                               : OP_NE;
        if (!no_half(l, e) || !no_half(r, e)) return nullptr;
        return operation(op, TYPE_BOOL, e->getSourceRange(), {l, r});
      }
    }
    if (const auto *call = dyn_cast<CallExpr>(e)) {
      bool is_question = false;
      host_expr *c = read_call(call, &is_question);
      if (!c) return nullptr;
      if (c->type == TYPE_BOOL) return c;
      if (c->kind == HOST_CAST && list_at(&c->args, host_expr, 0)->type == TYPE_BOOL) return list_at(&c->args, host_expr, 0);
      return not_zero(c, e);
    }
    host_expr *v = value(e);
    return !v || v->type == TYPE_BOOL ? v : not_zero(v, e);
  }

  host_expr *not_zero(host_expr *v, const Expr *e) {
    host_expr *zero = type_is_float(v->type) ? expr(HOST_FLOAT, v->type, e->getSourceRange()) : integer(v->type, 0, e->getSourceRange());
    return operation(OP_NE, TYPE_BOOL, e->getSourceRange(), {v, zero});
  }

  bool no_half(host_expr *a, const Expr *e) {
    if (a->type != TYPE_F16 && a->type != TYPE_BF16) return true;
    refuse(e->getSourceRange(), "arithmetic in a storage type rounds at every step", "convert to float first: (float)x");
    return false;
  }

  // An element: the chain of [] and * down to a parameter.
  host_expr *element(const Expr *e) {
    SourceRange where = e->getSourceRange();
    std::vector<host_expr *> indices; // innermost first
    for (;;) {
      e = e->IgnoreParens();
      if (const auto *c = dyn_cast<ImplicitCastExpr>(e); c && (c->getCastKind() == CK_ArrayToPointerDecay || c->getCastKind() == CK_LValueToRValue || c->getCastKind() == CK_NoOp)) {
        e = c->getSubExpr();
      } else if (const auto *s = dyn_cast<ArraySubscriptExpr>(e)) {
        host_expr *i = value(s->getIdx());
        if (!i) return nullptr;
        indices.push_back(i);
        e = s->getBase();
      } else if (const auto *u = dyn_cast<UnaryOperator>(e); u && u->getOpcode() == UO_Deref) {
        const Expr *p = u->getSubExpr()->IgnoreParenImpCasts();
        const auto *b = dyn_cast<BinaryOperator>(p);
        host_expr *i = nullptr;
        if (b && b->getOpcode() == BO_Add && b->getType()->isPointerType()) {
          bool is_left = b->getLHS()->getType()->isPointerType();
          i = value(is_left ? b->getRHS() : b->getLHS());
          if (!i) return nullptr;
          e = is_left ? b->getLHS() : b->getRHS();
        } else {
          i = integer(TYPE_I32, 0, where);
          e = u->getSubExpr();
        }
        indices.push_back(i);
      } else {
        break;
      }
    }
    const auto *reference = dyn_cast<DeclRefExpr>(e);
    const auto *d = reference ? dyn_cast<VarDecl>(reference->getDecl()) : nullptr;
    auto known = d ? variables.find(d->getCanonicalDecl()) : variables.end();
    if (known == variables.end() || !known->second->is_array) {
      refuse(e->getSourceRange(), d ? "'" + d->getNameAsString() + "' is no array parameter" : "an access has no array parameter at its base",
             "write accesses as A[i][j] or A[i * m + j] of the function's own parameters");
      return nullptr;
    }
    host_var *v = known->second;
    if (indices.size() != v->dims.count) {
      refuse(where, "'" + std::string(v->name) + "' is accessed with " + std::to_string(indices.size()) + " of its " + std::to_string(v->dims.count) + " indices");
      return nullptr;
    }
    host_expr *a = expr(HOST_ACCESS, v->type, where);
    a->var = v;
    for (auto i = indices.rbegin(); i != indices.rend(); ++i) list_push(diag->arena, &a->args, *i);
    return a;
  }

  host_expr *reference(const DeclRefExpr *e) {
    const auto *d = dyn_cast<VarDecl>(e->getDecl());
    auto known = d ? variables.find(d->getCanonicalDecl()) : variables.end();
    if (known == variables.end()) {
      refuse(e->getSourceRange(), "'" + e->getDecl()->getNameAsString() + "' is neither a parameter nor a local variable",
             "pass it as a parameter, or make it a constant");
      return nullptr;
    }
    if (known->second->is_array) {
      refuse(e->getSourceRange(), "array '" + std::string(known->second->name) + "' is used as a pointer",
             "access its elements where they are needed: A[i * m + j]");
      return nullptr;
    }
    host_expr *v = expr(HOST_VAR, known->second->type, e->getSourceRange());
    v->var = known->second;
    return v;
  }

  host_expr *read_call(const CallExpr *e, bool *is_question) {
    const FunctionDecl *callee = e->getDirectCallee();
    std::string name = callee ? callee->getNameAsString() : "", written = name;
    bool is_std = callee && callee->isInStdNamespace();
    SourceRange where = e->getSourceRange();
    auto result = type_of(e->getType());
    if (callee && is_std && (name == "min" || name == "max") && e->getNumArgs() == 2 && result) {
      host_expr *a = value(e->getArg(0)), *b = a ? value(e->getArg(1)) : nullptr;
      if (!b || !no_half(a, e) || !no_half(b, e)) return nullptr;
      host_expr *less = name == "min" ? operation(OP_LT, TYPE_BOOL, where, {b, a}) : operation(OP_LT, TYPE_BOOL, where, {a, b});
      return select(less, b, a, where);
    }
    bool is_library = callee && (is_std || callee->getBuiltinID() || callee->isExternC() || ast.getSourceManager().isInSystemHeader(callee->getLocation()));
    if (name.rfind("__builtin_", 0) == 0) name = name.substr(10);
    if (name == "__isnan" || name == "__isnanf") name = "isnan";
    if (name == "__isinf" || name == "__isinff") name = "isinf";
    auto found = functions().find(name);
    if (found == functions().end() && name.size() > 1 && name.back() == 'f') found = functions().find(name.substr(0, name.size() - 1));
    if (!is_library || found == functions().end() || !result || (callee->hasBody() && !is_std && !ast.getSourceManager().isInSystemHeader(callee->getLocation()))) {
      refuse(where, callee ? "'" + written + "' is called" : "a function is called through a pointer",
             "a kernel calls functions of math.h only: exp exp2 log log2 sqrt sin cos tanh erf pow fma floor ceil round trunc fabs fmin fmax isnan "
             "isinf abs; write others out where they are used");
      return nullptr;
    }
    enum op op = found->second;
    if (static_cast<unsigned>(op_table[op].operands) != e->getNumArgs()) {
      refuse(where, "'" + written + "' has other arguments than the function of math.h");
      return nullptr;
    }
    bool asks = op == OP_ISNAN || op == OP_ISINF;
    host_expr *call = expr(HOST_OP, asks ? TYPE_BOOL : *result, where);
    call->op = op;
    for (const Expr *argument : e->arguments()) {
      host_expr *a = value(argument);
      if (!a || !no_half(a, e)) return nullptr;
      list_push(diag->arena, &call->args, a);
    }
    *is_question = asks;
    return asks && *result != TYPE_BOOL ? cast(*result, call, where) : call;
  }

  host_expr *binary(const BinaryOperator *b, enum type type) {
    SourceRange where = b->getSourceRange();
    enum op op;
    switch (b->getOpcode()) {
    case BO_Add: op = OP_ADD; break;
    case BO_Sub: op = OP_SUB; break;
    case BO_Mul: op = OP_MUL; break;
    case BO_Div: op = OP_DIV; break;
    case BO_Rem: op = OP_MOD; break;
    case BO_And: op = OP_AND; break;
    case BO_Or: op = OP_OR; break;
    case BO_Xor: op = OP_XOR; break;
    case BO_Shl: op = OP_SHL; break;
    case BO_Shr: op = OP_SHR; break;
    default:
      if (b->isAssignmentOp())
        refuse(where, "an assignment stands inside an expression", "make it a statement of its own");
      else if (b->getOpcode() == BO_Comma)
        refuse(where, "the comma operator joins expressions", "make them statements of their own");
      else
        refuse(where, "operator '" + b->getOpcodeStr().str() + "' has no counterpart");
      return nullptr;
    }
    if (b->getType()->isPointerType() || b->getLHS()->getType()->isPointerType()) {
      refuse(where, "pointers are calculated with", "access elements by index: A[i * m + j]");
      return nullptr;
    }
    host_expr *l = value(b->getLHS()), *r = l ? value(b->getRHS()) : nullptr;
    if (!r || !no_half(l, b) || !no_half(r, b)) return nullptr;
    if (op == OP_SHL || op == OP_SHR) r = cast(l->type, r, where);
    return operation(op, type, where, {l, r});
  }

  // The value of an expression, with C's conversions written out. NULL after a refusal.
  host_expr *value(const Expr *e) {
    if (++depth > 200) {
      depth--;
      refuse(e->getSourceRange(), "an expression nests deeper than 200 levels", "name a part by a local variable");
      return nullptr;
    }
    host_expr *v = value_inside(e);
    depth--;
    return v;
  }

  host_expr *value_inside(const Expr *e) {
    e = e->IgnoreParens();
    SourceRange where = e->getSourceRange();
    if (const auto *f = dyn_cast<FullExpr>(e)) return value(f->getSubExpr());
    if (const auto *m = dyn_cast<MaterializeTemporaryExpr>(e)) return value(m->getSubExpr());
    if (isa<InitListExpr>(e) && cast_list(e)) return value(cast_list(e));
    if (e->getType()->isPointerType() || e->getType()->isArrayType()) {
      refuse(where, "a pointer is used as a value", "access elements by index: A[i * m + j]");
      return nullptr;
    }
    auto type = type_or_refuse(e->getType(), where);
    if (!type) return nullptr;
    if (!mentions_variables(e))
      if (host_expr *constant = literal(e, *type)) return constant;
    if (const auto *c = dyn_cast<CastExpr>(e)) {
      switch (c->getCastKind()) {
      case CK_LValueToRValue: case CK_NoOp: case CK_FunctionToPointerDecay: return value(c->getSubExpr());
      case CK_IntegralToBoolean: case CK_FloatingToBoolean: return condition(e);
      case CK_IntegralCast: case CK_IntegralToFloating: case CK_FloatingToIntegral: case CK_FloatingCast: case CK_BooleanToSignedIntegral: {
        host_expr *a = value(c->getSubExpr());
        return a ? cast(*type, a, where) : nullptr;
      }
      case CK_ConstructorConversion:
      default:
        refuse(where, "a conversion of kind " + std::string(c->getCastKindName()) + " has no counterpart");
        return nullptr;
      }
    }
    if (const auto *r = dyn_cast<DeclRefExpr>(e)) return reference(r);
    if (isa<ArraySubscriptExpr>(e)) return element(e);
    if (const auto *u = dyn_cast<UnaryOperator>(e)) {
      if (u->getOpcode() == UO_Deref) return element(e);
      if (u->isIncrementDecrementOp()) {
        refuse(where, "'" + UnaryOperator::getOpcodeStr(u->getOpcode()).str() + "' stands inside an expression", "make it a statement of its own");
        return nullptr;
      }
      if (u->getOpcode() == UO_LNot) {
        host_expr *c = condition(e);
        return c ? cast(*type, c, where) : nullptr;
      }
      if (u->getOpcode() != UO_Minus && u->getOpcode() != UO_Not && u->getOpcode() != UO_Plus) {
        refuse(where, "operator '" + UnaryOperator::getOpcodeStr(u->getOpcode()).str() + "' has no counterpart");
        return nullptr;
      }
      host_expr *a = value(u->getSubExpr());
      if (!a || !no_half(a, e) || u->getOpcode() == UO_Plus) return a;
      return operation(u->getOpcode() == UO_Minus ? OP_NEG : OP_NOT, *type, where, {a});
    }
    if (const auto *b = dyn_cast<BinaryOperator>(e)) {
      if (!b->isLogicalOp() && !b->isComparisonOp()) return binary(b, *type);
      host_expr *c = condition(e);
      return c ? cast(*type, c, where) : nullptr;
    }
    if (const auto *c = dyn_cast<ConditionalOperator>(e)) {
      host_expr *question = condition(c->getCond()), *a = question ? value(c->getTrueExpr()) : nullptr, *b = a ? value(c->getFalseExpr()) : nullptr;
      return b && no_half(a, e) && no_half(b, e) ? select(question, a, b, where) : nullptr;
    }
    if (const auto *call = dyn_cast<CallExpr>(e)) {
      bool is_question = false;
      return read_call(call, &is_question);
    }
    refuse(where, "an expression of kind " + std::string(e->getStmtClassName()) + " has no counterpart");
    return nullptr;
  }

  static const Expr *cast_list(const Expr *e) {
    const auto *l = dyn_cast<InitListExpr>(e);
    return l && l->getNumInits() == 1 ? l->getInit(0) : nullptr;
  }

  // Whether the value depends on a variable of the function. Globals that are constant do not count.
  bool mentions_variables(const Stmt *s) {
    if (const auto *r = dyn_cast<DeclRefExpr>(s))
      if (const auto *d = dyn_cast<VarDecl>(r->getDecl())) return variables.count(d->getCanonicalDecl()) != 0;
    for (const Stmt *child : s->children())
      if (child && mentions_variables(child)) return true;
    return false;
  }

  // ---- Statements

  void read_body(const Stmt *s, struct list *out) {
    if (const auto *c = dyn_cast_or_null<CompoundStmt>(s)) {
      for (const Stmt *child : c->body()) read_stmt(child, out);
    } else if (s) {
      read_stmt(s, out);
    }
  }

  void assign(host_expr *target, host_expr *v, SourceRange where, struct list *out) {
    if (target->kind == HOST_VAR && target->var->is_parameter)
      return refuse(where, "parameter '" + std::string(target->var->name) + "' is assigned to", "copy it to a local variable first");
    if (target->kind == HOST_ACCESS) target->var->is_written = true;
    host_stmt *s = stmt(HOST_ASSIGN, where);
    s->target = target;
    s->value = v;
    list_push(diag->arena, out, s);
  }

  // The variable or element that an assignment names.
  host_expr *target_of(const Expr *e) {
    e = e->IgnoreParens();
    if (const auto *r = dyn_cast<DeclRefExpr>(e)) return reference(r);
    if (isa<ArraySubscriptExpr>(e) || (isa<UnaryOperator>(e) && cast<UnaryOperator>(e)->getOpcode() == UO_Deref)) return element(e);
    refuse(e->getSourceRange(), "this cannot be assigned to", "assign to local variables and to elements of array parameters");
    return nullptr;
  }
  template <class T> static const T *cast(const Expr *e) { return llvm::cast<T>(e); }

  void read_assignment(const BinaryOperator *b, struct list *out) {
    SourceRange where = b->getSourceRange();
    if (b->getLHS()->getType()->isPointerType()) return refuse(where, "a pointer is assigned to", "access elements by index: A[i * m + j]");
    host_expr *target = target_of(b->getLHS());
    if (!target) return;
    host_expr *right = value(b->getRHS());
    if (!right) return;
    if (const auto *c = dyn_cast<CompoundAssignOperator>(b)) {
      auto computed = type_or_refuse(c->getComputationLHSType(), where);
      if (!computed) return;
      if (*computed == TYPE_F16 || *computed == TYPE_BF16 || (!no_half(right, b))) {
        if (!function->is_refused) refuse(where, "arithmetic in a storage type rounds at every step", "accumulate in a float");
        return;
      }
      enum op op;
      switch (b->getOpcode()) {
      case BO_AddAssign: op = OP_ADD; break;
      case BO_SubAssign: op = OP_SUB; break;
      case BO_MulAssign: op = OP_MUL; break;
      case BO_DivAssign: op = OP_DIV; break;
      case BO_RemAssign: op = OP_MOD; break;
      case BO_AndAssign: op = OP_AND; break;
      case BO_OrAssign: op = OP_OR; break;
      case BO_XorAssign: op = OP_XOR; break;
      case BO_ShlAssign: op = OP_SHL; break;
      default: op = OP_SHR; break;
      }
      host_expr *left = cast(*computed, target, where);
      right = operation(op, *computed, where, {left, op == OP_SHL || op == OP_SHR ? cast(*computed, right, where) : right});
    }
    assign(target, cast(target->type, right, where), where, out);
  }

  void read_increment(const UnaryOperator *u, struct list *out) {
    SourceRange where = u->getSourceRange();
    host_expr *target = target_of(u->getSubExpr());
    if (!target) return;
    if (target->type == TYPE_F16 || target->type == TYPE_BF16) return refuse(where, "arithmetic in a storage type rounds at every step");
    host_expr *one;
    if (type_is_float(target->type)) {
      one = expr(HOST_FLOAT, target->type, where);
      one->number = 1;
    } else {
      one = integer(target->type, 1, where);
    }
    assign(target, operation(u->isIncrementOp() ? OP_ADD : OP_SUB, target->type, where, {target, one}), where, out);
  }

  void read_declaration(const DeclStmt *d, struct list *out) {
    for (const Decl *one : d->decls()) {
      const auto *v = dyn_cast<VarDecl>(one);
      if (!v) {
        if (!isa<TypedefNameDecl>(one) && !isa<StaticAssertDecl>(one)) refuse(one->getSourceRange(), "this declaration has no counterpart");
        continue;
      }
      SourceRange where = v->getSourceRange();
      QualType q = v->getType();
      if (v->isStaticLocal() && !q.isConstQualified()) { refuse(where, "'" + v->getNameAsString() + "' is static: its value stays from call to call"); continue; }
      if (q->isArrayType()) { refuse(where, "'" + v->getNameAsString() + "' is a local array", "write the value out where it is used, or make the array an output parameter"); continue; }
      if (q->isPointerType() || q->isReferenceType()) { refuse(where, "'" + v->getNameAsString() + "' is a second name for memory (aliasing)", "access elements of the parameters by index: A[i * m + j]"); continue; }
      if (q.isVolatileQualified()) { refuse(where, "'volatile' promises accesses one by one", "take it away"); continue; }
      auto type = type_or_refuse(q, where);
      if (!type) continue;
      if (*type == TYPE_F16 || *type == TYPE_BF16) { refuse(where, "variable '" + v->getNameAsString() + "' is of a storage type, which rounds at every step", "make it float"); continue; }
      host_stmt *s = stmt(HOST_DECLARE, where);
      if (v->getInit()) {
        host_expr *init = value(v->getInit());
        if (!init) continue;
        s->value = cast(*type, init, where);
      }
      s->var = variable(v, *type);
      list_push(diag->arena, out, s);
    }
  }

  // What a loop's step adds to `v` each time; 0: no constant step.
  int64_t step_of(const Expr *e, const VarDecl *v) {
    e = e ? e->IgnoreParenImpCasts() : nullptr;
    if (const auto *f = dyn_cast_or_null<FullExpr>(e)) e = f->getSubExpr()->IgnoreParenImpCasts();
    auto is_var = [&](const Expr *x) {
      const auto *r = dyn_cast<DeclRefExpr>(x->IgnoreParenImpCasts());
      return r && r->getDecl()->getCanonicalDecl() == v->getCanonicalDecl();
    };
    auto constant = [&](const Expr *x) -> int64_t {
      Expr::EvalResult result;
      if (mentions_variables(x) || !x->EvaluateAsInt(result, ast)) return 0;
      return low_bits(result.Val.getInt());
    };
    if (const auto *u = dyn_cast_or_null<UnaryOperator>(e)) {
      if (!u->isIncrementDecrementOp() || !is_var(u->getSubExpr())) return 0;
      return u->isIncrementOp() ? 1 : -1;
    }
    const auto *b = dyn_cast_or_null<BinaryOperator>(e);
    if (!b || !is_var(b->getLHS())) return 0;
    if (b->getOpcode() == BO_AddAssign) return constant(b->getRHS());
    if (b->getOpcode() == BO_SubAssign) return -constant(b->getRHS());
    const auto *sum = b->getOpcode() == BO_Assign ? dyn_cast<BinaryOperator>(b->getRHS()->IgnoreParenImpCasts()) : nullptr;
    if (!sum) return 0;
    if (sum->getOpcode() == BO_Add && is_var(sum->getLHS())) return constant(sum->getRHS());
    if (sum->getOpcode() == BO_Add && is_var(sum->getRHS())) return constant(sum->getLHS());
    if (sum->getOpcode() == BO_Sub && is_var(sum->getLHS())) return -constant(sum->getRHS());
    return 0;
  }

  void read_for(const ForStmt *f, struct list *out) {
    SourceRange head(f->getForLoc(), f->getRParenLoc());
    const VarDecl *v = nullptr;
    const Expr *first = nullptr;
    bool is_declared_here = false;
    if (const auto *d = dyn_cast_or_null<DeclStmt>(f->getInit()); d && d->isSingleDecl()) {
      v = dyn_cast<VarDecl>(d->getSingleDecl());
      first = v ? v->getInit() : nullptr;
      is_declared_here = true;
    } else if (const auto *b = dyn_cast_or_null<BinaryOperator>(f->getInit()); b && b->getOpcode() == BO_Assign) {
      const auto *r = dyn_cast<DeclRefExpr>(b->getLHS()->IgnoreParens());
      v = r ? dyn_cast<VarDecl>(r->getDecl()) : nullptr;
      first = b->getRHS();
    }
    if (!v || !first || !v->getType()->isIntegerType())
      return refuse(head, "the loop does not begin with one integer variable and its first value", "write for (int i = 0; i < n; i++)");
    host_stmt *s = stmt(HOST_FOR, head);
    s->lo = value(first);
    if (!s->lo) return;
    auto type = type_or_refuse(v->getType(), head);
    if (!type) return;
    if (is_declared_here) {
      s->var = variable(v, *type);
    } else {
      auto known = variables.find(v->getCanonicalDecl());
      if (known == variables.end() || known->second->is_parameter)
        return refuse(head, "the loop counts in '" + v->getNameAsString() + "', which is no local variable", "declare it in the loop: for (int i = 0; ...)");
      s->var = known->second;
    }
    s->step = step_of(f->getInc(), v);
    if (!s->step) return refuse(f->getInc() ? f->getInc()->getSourceRange() : head, "the loop does not step by a constant", "write i++, i--, or i += 4");
    const Expr *test = f->getCond() ? f->getCond()->IgnoreParenImpCasts() : nullptr;
    const auto *b = dyn_cast_or_null<BinaryOperator>(test);
    auto is_var = [&](const Expr *x) {
      const auto *r = dyn_cast<DeclRefExpr>(x->IgnoreParenImpCasts());
      return r && r->getDecl()->getCanonicalDecl() == v->getCanonicalDecl();
    };
    if (!b || !b->isComparisonOp() || (!is_var(b->getLHS()) && !is_var(b->getRHS())))
      return refuse(f->getCond() ? f->getCond()->getSourceRange() : head, "the loop's end is no comparison of '" + v->getNameAsString() + "' with a bound", "write i < n");
    bool is_left = is_var(b->getLHS());
    BinaryOperatorKind op = is_left ? b->getOpcode() : BinaryOperator::reverseComparisonOp(b->getOpcode());
    bool fits = s->step > 0 ? op == BO_LT || op == BO_LE || (op == BO_NE && s->step == 1) : op == BO_GT || op == BO_GE || (op == BO_NE && s->step == -1);
    if (!fits) return refuse(b->getSourceRange(), "the loop's comparison does not go with its step", "count up with < and down with >");
    if (op == BO_GE && !type_is_signed(*type)) return refuse(b->getSourceRange(), "an unsigned variable is never below 0", "count down in a signed type");
    s->hi = value(is_left ? b->getRHS() : b->getLHS());
    if (!s->hi) return;
    if (op == BO_LE || op == BO_GE) s->hi = operation(op == BO_LE ? OP_ADD : OP_SUB, s->hi->type, b->getSourceRange(), {s->hi, integer(s->hi->type, 1, b->getSourceRange())});
    read_body(f->getBody(), &s->body);
    list_push(diag->arena, out, s);
  }

  void read_stmt(const Stmt *s, struct list *out) {
    if (++depth > 200) {
      depth--;
      return refuse(s->getSourceRange(), "statements nest deeper than 200 levels");
    }
    read_stmt_inside(s, out);
    depth--;
  }

  void read_stmt_inside(const Stmt *s, struct list *out) {
    SourceRange where = s->getSourceRange();
    if (isa<NullStmt>(s)) return;
    if (const auto *a = dyn_cast<AttributedStmt>(s)) return read_stmt(a->getSubStmt(), out);
    if (const auto *c = dyn_cast<CompoundStmt>(s)) {
      host_stmt *block = stmt(HOST_BLOCK, where);
      read_body(c, &block->body);
      list_push(diag->arena, out, block);
      return;
    }
    if (const auto *d = dyn_cast<DeclStmt>(s)) return read_declaration(d, out);
    if (const auto *f = dyn_cast<ForStmt>(s)) return read_for(f, out);
    if (const auto *i = dyn_cast<IfStmt>(s)) {
      if (i->getInit() || i->hasVarStorage()) return refuse(where, "an 'if' declares a variable", "declare it before");
      host_stmt *branch = stmt(HOST_IF, i->getCond()->getSourceRange());
      branch->value = condition(i->getCond());
      if (!branch->value) return;
      read_body(i->getThen(), &branch->body);
      if (i->getElse()) read_body(i->getElse(), &branch->otherwise);
      list_push(diag->arena, out, branch);
      return;
    }
    if (isa<ReturnStmt>(s)) return refuse(where, "it returns early", "put what follows under the opposite condition");
    if (isa<BreakStmt>(s)) return refuse(where, "'break' ends a loop by what was read", "run the whole loop and guard what it does: if (found) ...");
    if (isa<ContinueStmt>(s)) return refuse(where, "'continue' leaves an iteration", "put what follows under the opposite condition");
    if (isa<WhileStmt>(s) || isa<DoStmt>(s)) return refuse(SourceRange(s->getBeginLoc()), "this loop has no range", "write for (int i = 0; i < n; i++)");
    if (isa<CXXForRangeStmt>(s)) return refuse(SourceRange(s->getBeginLoc()), "a range-for has no index", "write for (int i = 0; i < n; i++)");
    if (isa<GotoStmt>(s) || isa<LabelStmt>(s)) return refuse(where, "it jumps", "write loops as for, branches as if");
    if (isa<SwitchStmt>(s)) return refuse(SourceRange(s->getBeginLoc()), "'switch' has no counterpart", "write if and else");
    if (const auto *e = dyn_cast<Expr>(s)) {
      e = e->IgnoreParens();
      if (const auto *f = dyn_cast<FullExpr>(e)) e = f->getSubExpr()->IgnoreParens();
      if (const auto *b = dyn_cast<BinaryOperator>(e); b && b->isAssignmentOp()) return read_assignment(b, out);
      if (const auto *u = dyn_cast<UnaryOperator>(e); u && u->isIncrementDecrementOp()) return read_increment(u, out);
      if (const auto *c = dyn_cast<CStyleCastExpr>(e); c && c->getType()->isVoidType()) return; // (void)x
      if (const auto *call = dyn_cast<CallExpr>(e)) {
        const FunctionDecl *callee = call->getDirectCallee();
        return refuse(where, callee ? "'" + callee->getNameAsString() + "' is called" : "a function is called through a pointer", "a kernel does nothing but assign");
      }
      return refuse(where, "this expression does nothing");
    }
    refuse(SourceRange(s->getBeginLoc()), "a statement of kind " + std::string(s->getStmtClassName()) + " has no counterpart");
  }

  struct diag *diag;
  clang_places &places;
  ASTContext &ast;
  host_function *function;
  std::map<const Decl *, host_var *> variables;
  int depth = 0;
};

class finder : public RecursiveASTVisitor<finder> {
public:
  explicit finder(std::vector<FunctionDecl *> &into) : found(into) {}
  bool VisitFunctionDecl(FunctionDecl *f) {
    if (f->isThisDeclarationADefinition() && is_marked(f)) found.push_back(f);
    return true;
  }

private:
  std::vector<FunctionDecl *> &found;
};

// Pragmas in a function or in front of it, behind the function before.
void take_pragmas(struct diag *diag, host_function *function, const SourceManager &sources, SourceLocation after, SourceLocation end, const std::vector<pragma_place> &pragmas) {
  for (const pragma_place &p : pragmas) {
    bool is_behind = after.isInvalid() || sources.isBeforeInTranslationUnit(after, p.where);
    if (!is_behind || !sources.isBeforeInTranslationUnit(p.where, end)) continue;
    if (p.text == "reassociate") {
      function->reassociates = true;
      continue;
    }
    auto *one = static_cast<host_pragma *>(arena_alloc(diag->arena, sizeof(host_pragma)));
    one->text = arena_strdup(diag->arena, p.text.c_str());
    one->range = p.range;
    list_push(diag->arena, &function->pragmas, one);
  }
}

} // namespace

bool host_read(struct diag *diag, const char *path, uint32_t file, const struct host_options *options, struct list *functions_out) {
  clang_job job;
  job.path = path;
  job.file = file;
  if (options->build && !clang_front_database(diag, options->build, job)) return false;
  for (uint32_t i = 0; i < options->arguments.count; i++) job.arguments.emplace_back(list_at(&options->arguments, const char, i));
  // The host's own copies go first.
  job.headers = {{"/red/red.h", reinterpret_cast<const char *>(RED_TEXT)}, {"/red/red_kernel.h", reinterpret_cast<const char *>(RED_KERNEL_TEXT)}};
  job.arguments.push_back("-idirafter/red");
  if (std::string(path) == "-") job.arguments.insert(job.arguments.begin(), {"-x", "c"});
  std::vector<pragma_place> pragmas;
  job.start = [&](CompilerInstance &instance, clang_places &places) {
    instance.getPreprocessor().AddPragmaHandler(new pragma_handler(pragmas, places));
  };
  job.done = [&](ASTContext &ast, clang_places &places) {
    if (diag->error_count) return;
    std::vector<FunctionDecl *> found;
    finder(found).TraverseAST(ast);
    const SourceManager &sources = ast.getSourceManager();
    SourceLocation after;
    for (FunctionDecl *f : found) {
      if (f->isTemplated()) {
        diag_error(diag, ERROR_LIFT, places.range(f->getLocation()), "'%s' is not lifted: it is a template", f->getNameAsString().c_str());
        continue;
      }
      auto *function = static_cast<host_function *>(arena_alloc(diag->arena, sizeof(host_function)));
      function->name = arena_strdup(diag->arena, f->getNameAsString().c_str());
      function->range = places.range(f->getLocation());
      take_pragmas(diag, function, sources, after, f->getEndLoc(), pragmas);
      after = f->getEndLoc();
      reader(diag, places, ast, function).read(f);
      list_push(diag->arena, functions_out, function);
    }
  };
  return clang_front_run(diag, job);
}
