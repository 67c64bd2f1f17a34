// redc inspect: CUDA through Clang into the structs of inspect_model.h. Clang's nodes go no further than this file.
#include "codegen/inspect_model.h"

#include "compiler/clang_front.h"

#include "clang/AST/ASTContext.h"
#include "clang/AST/Attr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/StmtCXX.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"

#include <map>
#include <string>
#include <vector>

namespace {

const char BUILTINS[] =
#include "codegen/inspect_builtins.inc"
    ;
// cuda_fp16.h and cuda_bf16.h: their names are free where they are not included.
const char HALVES[] =
#include "codegen/inspect_half.inc"
    ;
const char BUILTINS_PATH[] = "/red/inspect_builtins.h";

class reader {
public:
  reader(clang::ASTContext &clang_context, clang_places &where, struct cuda_module *out)
      : context(clang_context), places(where), module(out), arena(where.diag->arena) {}

  // Host code is not what is inspected, and calls more of CUDA's library than is declared here: what is wrong with it is passed over.
  void forgive_host() {
    std::vector<struct range> hosts;
    find_hosts(context.getTranslationUnitDecl(), hosts);
    struct list kept = {};
    for (uint32_t i = 0; i < places.diag->diagnostics.count; i++) {
      auto *one = static_cast<struct diagnostic *>(places.diag->diagnostics.at[i]);
      bool is_host = false;
      for (const struct range &host : hosts)
        is_host = is_host || (one->range.line && one->range.file == host.file && one->range.line >= host.line && one->range.line <= host.end_line);
      if (one->kind == DIAG_ERROR && is_host) {
        places.diag->error_count--;
        places.forgiven = true;
      } else {
        list_push(arena, &kept, one);
      }
    }
    places.diag->diagnostics = kept;
  }

  void read() {
    for (clang::Decl *decl : context.getTranslationUnitDecl()->decls()) read_decl(decl);
  }

private:
  // ---- Declarations

  bool is_ours(clang::SourceLocation at) const {
    return places.sources->getFilename(places.sources->getExpansionLoc(at)).starts_with("/red/");
  }

  void find_hosts(clang::DeclContext *scope, std::vector<struct range> &hosts) {
    for (clang::Decl *decl : scope->decls()) {
      if (auto *pattern = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) decl = pattern->getTemplatedDecl();
      auto *function = llvm::dyn_cast<clang::FunctionDecl>(decl);
      if (!function) {
        if (auto *inner = llvm::dyn_cast<clang::DeclContext>(decl)) find_hosts(inner, hosts);
      } else if (function->doesThisDeclarationHaveABody() && !function->hasAttr<clang::CUDAGlobalAttr>() && !function->hasAttr<clang::CUDADeviceAttr>()) {
        hosts.push_back(places.range(function->getSourceRange()));
      }
    }
  }

  void read_decl(clang::Decl *decl) {
    if (auto *linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
      for (clang::Decl *inner : linkage->decls()) read_decl(inner);
    } else if (auto *space = llvm::dyn_cast<clang::NamespaceDecl>(decl)) {
      for (clang::Decl *inner : space->decls()) read_decl(inner);
    } else if (auto *pattern = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) {
      for (clang::FunctionDecl *instance : pattern->specializations()) read_function(instance);
    } else if (auto *record = llvm::dyn_cast<clang::CXXRecordDecl>(decl)) {
      for (clang::Decl *inner : record->decls())
        if (llvm::isa<clang::FunctionDecl>(inner)) read_decl(inner);
    } else if (auto *function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
      read_function(function);
    }
  }

  void read_function(clang::FunctionDecl *decl) {
    if (is_ours(decl->getLocation()) || !decl->doesThisDeclarationHaveABody() || decl->isDependentContext()) return;
    if (decl->hasAttr<clang::CUDAGlobalAttr>() || decl->hasAttr<clang::CUDADeviceAttr>())
      function_of(decl);
    else
      read_host(decl->getBody());
  }

  struct cuda_function *function_of(const clang::FunctionDecl *decl) {
    const clang::FunctionDecl *definition = nullptr;
    if (!decl->hasBody(definition)) return nullptr;
    auto known = functions.find(definition);
    if (known != functions.end()) return known->second;
    auto *function = arena_new(arena, struct cuda_function);
    functions[definition] = function; // before the body: it may call itself
    function->name = arena_strdup(arena, definition->getNameAsString().c_str());
    function->range = places.range(definition->getLocation());
    function->is_kernel = definition->hasAttr<clang::CUDAGlobalAttr>();
    if (const auto *bounds = definition->getAttr<clang::CUDALaunchBoundsAttr>()) {
      function->bound_threads = constant(bounds->getMaxThreads());
      if (bounds->getMinBlocks()) function->bound_blocks = constant(bounds->getMinBlocks());
    }
    for (const clang::ParmVarDecl *parameter : definition->parameters())
      list_push(arena, &function->parameters, variable_of(parameter));
    function->body = read_stmt(definition->getBody());
    if (!is_ours(definition->getLocation())) list_push(arena, &module->functions, function);
    return function;
  }

  // Its lowest 64 bits: those of an unsigned number above 2^63 are a negative one.
  static int64_t low_bits(const llvm::APSInt &integer) { return integer.extOrTrunc(64).getZExtValue(); }

  int64_t constant(const clang::Expr *expr) const {
    clang::Expr::EvalResult result;
    if (expr && !expr->isValueDependent() && expr->EvaluateAsInt(result, context)) return low_bits(result.Val.getInt());
    return 0;
  }

  struct cuda_type type_of(clang::QualType type) const {
    struct cuda_type t = {};
    clang::QualType bare = type.getCanonicalType();
    if (bare->isReferenceType()) bare = bare.getNonReferenceType();
    t.spelling = arena_strdup(arena, type.getAsString().c_str());
    t.is_volatile = bare.isVolatileQualified();
    t.is_const = bare.isConstQualified();
    t.is_restrict = type.isRestrictQualified();
    if (bare->isIncompleteArrayType() || bare->isVariableArrayType()) {
      t.is_array = true;
      clang::QualType element = context.getBaseElementType(bare);
      t.pointee = (uint32_t)context.getTypeSizeInChars(element).getQuantity();
    } else if (!bare->isVoidType() && !bare->isIncompleteType() && !bare->isFunctionType() && !bare->isDependentType()) {
      t.bytes = (uint32_t)context.getTypeSizeInChars(bare).getQuantity();
    }
    if (const auto *array = context.getAsConstantArrayType(bare)) {
      t.is_array = true;
      t.pointee = (uint32_t)context.getTypeSizeInChars(array->getElementType()).getQuantity();
      bare = context.getBaseElementType(bare);
      t.is_volatile = bare.isVolatileQualified();
    }
    if (bare->isPointerType()) {
      clang::QualType pointee = bare->getPointeeType();
      t.kind = CUDA_POINTER;
      t.is_volatile = pointee.isVolatileQualified();
      t.is_const = pointee.isConstQualified();
      if (!pointee->isVoidType() && !pointee->isIncompleteType() && !pointee->isFunctionType())
        t.pointee = (uint32_t)context.getTypeSizeInChars(pointee).getQuantity();
    } else if (bare->isIntegralOrEnumerationType()) {
      t.kind = CUDA_INTEGER;
      t.is_signed = bare->isSignedIntegerOrEnumerationType();
    } else if (bare->isFloatingType()) {
      t.kind = CUDA_FLOAT;
    } else if (!bare->isVoidType()) {
      t.kind = CUDA_RECORD;
    }
    return t;
  }

  struct cuda_variable *variable_of(const clang::VarDecl *decl) {
    decl = decl->getCanonicalDecl();
    auto known = variables.find(decl);
    if (known != variables.end()) return known->second;
    auto *variable = arena_new(arena, struct cuda_variable);
    variables[decl] = variable;
    variable->name = arena_strdup(arena, decl->getNameAsString().c_str());
    variable->type = type_of(decl->getType());
    variable->range = places.range(decl->getLocation());
    variable->space = SPACE_LOCAL;
    if (llvm::isa<clang::ParmVarDecl>(decl)) variable->space = SPACE_PARAMETER;
    if (decl->hasAttr<clang::CUDASharedAttr>()) {
      variable->space = SPACE_SHARED;
      variable->is_dynamic = decl->hasExternalStorage();
    } else if (decl->hasGlobalStorage()) {
      variable->space = SPACE_DEVICE;
    }
    variable->number = module->variables.count;
    list_push(arena, &module->variables, variable);
    return variable;
  }

  // ---- Statements

  struct cuda_stmt *new_stmt(enum cuda_stmt_kind kind, const clang::Stmt *at) {
    auto *stmt = arena_new(arena, struct cuda_stmt);
    stmt->kind = kind;
    stmt->range = places.range(at->getSourceRange());
    return stmt;
  }

  void read_declaration(const clang::VarDecl *decl, const clang::Stmt *at, struct cuda_stmt *block) {
    struct cuda_stmt *stmt = new_stmt(STMT_DECLARE, at);
    stmt->variable = variable_of(decl);
    if (decl->getInit() && stmt->variable->space == SPACE_LOCAL) stmt->expr = read_expr(decl->getInit());
    list_push(arena, &block->stmts, stmt);
  }

  struct cuda_stmt *read_stmt(const clang::Stmt *stmt) {
    if (!stmt) return nullptr;
    if (const auto *compound = llvm::dyn_cast<clang::CompoundStmt>(stmt)) {
      struct cuda_stmt *block = new_stmt(STMT_BLOCK, stmt);
      for (const clang::Stmt *inner : compound->body())
        if (struct cuda_stmt *one = read_stmt(inner)) list_push(arena, &block->stmts, one);
      return block;
    }
    if (const auto *declare = llvm::dyn_cast<clang::DeclStmt>(stmt)) {
      struct cuda_stmt *block = new_stmt(STMT_BLOCK, stmt);
      for (const clang::Decl *decl : declare->decls())
        if (const auto *variable = llvm::dyn_cast<clang::VarDecl>(decl)) read_declaration(variable, stmt, block);
      return block;
    }
    if (const auto *branch = llvm::dyn_cast<clang::IfStmt>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_IF, stmt);
      if (branch->isConstexpr() && branch->getNondiscardedCase(context)) {
        auto taken = branch->getNondiscardedCase(context);
        return read_stmt(*taken);
      }
      made->expr = read_expr(branch->getCond());
      made->body = read_stmt(branch->getThen());
      made->other = read_stmt(branch->getElse());
      return made;
    }
    if (const auto *loop = llvm::dyn_cast<clang::ForStmt>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_LOOP, stmt);
      made->first = read_stmt(loop->getInit());
      if (loop->getCond()) made->expr = read_expr(loop->getCond());
      if (loop->getInc()) made->step = read_expr(loop->getInc());
      made->body = read_stmt(loop->getBody());
      return made;
    }
    if (const auto *loop = llvm::dyn_cast<clang::WhileStmt>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_LOOP, stmt);
      made->expr = read_expr(loop->getCond());
      made->body = read_stmt(loop->getBody());
      return made;
    }
    if (const auto *loop = llvm::dyn_cast<clang::DoStmt>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_LOOP, stmt);
      made->expr = read_expr(loop->getCond());
      made->body = read_stmt(loop->getBody());
      made->tests_last = true;
      return made;
    }
    if (const auto *result = llvm::dyn_cast<clang::ReturnStmt>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_RETURN, stmt);
      if (result->getRetValue()) made->expr = read_expr(result->getRetValue());
      return made;
    }
    if (llvm::isa<clang::BreakStmt>(stmt)) return new_stmt(STMT_BREAK, stmt);
    if (llvm::isa<clang::ContinueStmt>(stmt)) return new_stmt(STMT_CONTINUE, stmt);
    if (llvm::isa<clang::NullStmt>(stmt)) return nullptr;
    if (const auto *attributed = llvm::dyn_cast<clang::AttributedStmt>(stmt)) return read_stmt(attributed->getSubStmt());
    if (const auto *expr = llvm::dyn_cast<clang::Expr>(stmt)) {
      struct cuda_stmt *made = new_stmt(STMT_EXPR, stmt);
      made->expr = read_expr(expr);
      return made;
    }
    // asm, switch, goto, try: what is inside is looked at; what it decides is not known.
    struct cuda_stmt *made = new_stmt(STMT_EXPR, stmt);
    made->expr = new_expr(EXPR_UNKNOWN, stmt);
    struct cuda_stmt *block = new_stmt(STMT_BLOCK, stmt);
    for (const clang::Stmt *child : stmt->children())
      if (child && llvm::isa<clang::Expr>(child))
        add_operand(made->expr, read_expr(llvm::cast<clang::Expr>(child)));
      else if (struct cuda_stmt *inner = child ? read_stmt(child) : nullptr)
        list_push(arena, &block->stmts, inner);
    if (!block->stmts.count) return made;
    struct cuda_stmt *branch = new_stmt(STMT_IF, stmt);
    branch->expr = made->expr;
    branch->body = block;
    return branch;
  }

  // ---- Expressions

  struct cuda_expr *new_expr(enum cuda_expr_kind kind, const clang::Stmt *at) {
    auto *expr = arena_new(arena, struct cuda_expr);
    expr->kind = kind;
    expr->op = CUDA_NO_OP;
    expr->range = places.range(at->getSourceRange());
    return expr;
  }

  void add_operand(struct cuda_expr *expr, struct cuda_expr *operand) {
    auto **longer = arena_array(arena, struct cuda_expr *, expr->operand_count + 1);
    for (uint32_t i = 0; i < expr->operand_count; i++) longer[i] = expr->operands[i];
    longer[expr->operand_count++] = operand;
    expr->operands = longer;
  }

  static enum cuda_op operator_of(clang::BinaryOperatorKind kind) {
    switch (kind) {
    case clang::BO_Add: case clang::BO_AddAssign: return CUDA_ADD;
    case clang::BO_Sub: case clang::BO_SubAssign: return CUDA_SUB;
    case clang::BO_Mul: case clang::BO_MulAssign: return CUDA_MUL;
    case clang::BO_Div: case clang::BO_DivAssign: return CUDA_DIV;
    case clang::BO_Rem: case clang::BO_RemAssign: return CUDA_REM;
    case clang::BO_Shl: case clang::BO_ShlAssign: return CUDA_SHL;
    case clang::BO_Shr: case clang::BO_ShrAssign: return CUDA_SHR;
    case clang::BO_And: case clang::BO_AndAssign: return CUDA_AND;
    case clang::BO_Or: case clang::BO_OrAssign: return CUDA_OR;
    case clang::BO_Xor: case clang::BO_XorAssign: return CUDA_XOR;
    case clang::BO_LT: return CUDA_LT;
    case clang::BO_LE: return CUDA_LE;
    case clang::BO_GT: return CUDA_GT;
    case clang::BO_GE: return CUDA_GE;
    case clang::BO_EQ: return CUDA_EQ;
    case clang::BO_NE: return CUDA_NE;
    case clang::BO_LAnd: return CUDA_LAND;
    case clang::BO_LOr: return CUDA_LOR;
    case clang::BO_Comma: return CUDA_COMMA;
    default: return CUDA_NO_OP;
    }
  }

  // threadIdx.x and its like; NULL for other members.
  struct cuda_expr *builtin_of(const clang::MemberExpr *member) {
    const auto *reference = llvm::dyn_cast<clang::DeclRefExpr>(member->getBase()->IgnoreParenImpCasts());
    if (!reference || !is_ours(reference->getDecl()->getLocation())) return nullptr;
    static const std::map<std::string, enum cuda_builtin> names = {{"threadIdx", BUILTIN_THREAD},
                                                                   {"blockIdx", BUILTIN_BLOCK},
                                                                   {"blockDim", BUILTIN_BLOCK_DIM},
                                                                   {"gridDim", BUILTIN_GRID_DIM}};
    auto known = names.find(reference->getDecl()->getNameAsString());
    std::string field = member->getMemberDecl()->getNameAsString();
    if (known == names.end() || field.size() != 1) return nullptr;
    struct cuda_expr *expr = new_expr(EXPR_BUILTIN, member);
    expr->builtin = known->second;
    expr->dimension = (uint32_t)(field[0] - 'x');
    expr->type = type_of(context.UnsignedIntTy);
    return expr;
  }

  struct cuda_expr *read_expr(const clang::Expr *expr) {
    // Deeper than anybody writes: not looked into, since each level asks Clang about all below it.
    depth++;
    struct cuda_expr *made = depth > MAX_DEPTH ? new_expr(EXPR_UNKNOWN, expr) : read_expr_untyped(expr);
    depth--;
    if (!made->type.spelling) made->type = type_of(expr->getType());
    return made;
  }

  struct cuda_expr *read_expr_untyped(const clang::Expr *expr) {
    if (const auto *parens = llvm::dyn_cast<clang::ParenExpr>(expr)) return read_expr(parens->getSubExpr());
    if (const auto *full = llvm::dyn_cast<clang::FullExpr>(expr)) return read_expr(full->getSubExpr());
    if (const auto *temporary = llvm::dyn_cast<clang::MaterializeTemporaryExpr>(expr)) return read_expr(temporary->getSubExpr());
    if (const auto *bound = llvm::dyn_cast<clang::CXXBindTemporaryExpr>(expr)) return read_expr(bound->getSubExpr());
    if (const auto *other = llvm::dyn_cast<clang::SubstNonTypeTemplateParmExpr>(expr)) return read_expr(other->getReplacement());
    if (const auto *other = llvm::dyn_cast<clang::CXXDefaultArgExpr>(expr)) return read_expr(other->getExpr());
    clang::Expr::EvalResult result;
    if (expr->getType()->isIntegralOrEnumerationType() && !expr->isGLValue() && !expr->isValueDependent() &&
        expr->EvaluateAsInt(result, context, clang::Expr::SE_NoSideEffects)) {
      struct cuda_expr *made = new_expr(EXPR_INTEGER, expr);
      made->integer = low_bits(result.Val.getInt());
      return made;
    }
    if (const auto *cast = llvm::dyn_cast<clang::CastExpr>(expr)) {
      switch (cast->getCastKind()) {
      case clang::CK_LValueToRValue: case clang::CK_NoOp: case clang::CK_ArrayToPointerDecay: case clang::CK_FunctionToPointerDecay:
      case clang::CK_ConstructorConversion: case clang::CK_UserDefinedConversion:
        return read_expr(cast->getSubExpr());
      default: break;
      }
      struct cuda_expr *made = new_expr(EXPR_CAST, expr);
      made->a = read_expr(cast->getSubExpr());
      return made;
    }
    if (const auto *reference = llvm::dyn_cast<clang::DeclRefExpr>(expr)) {
      const auto *variable = llvm::dyn_cast<clang::VarDecl>(reference->getDecl());
      if (variable && variable->hasGlobalStorage() && is_ours(variable->getLocation())) {
        struct cuda_expr *made = new_expr(EXPR_BUILTIN, expr);
        made->builtin = BUILTIN_WARP_SIZE;
        return made;
      }
      struct cuda_expr *made = new_expr(variable ? EXPR_VARIABLE : EXPR_UNKNOWN, expr);
      if (variable) made->variable = variable_of(variable);
      return made;
    }
    if (const auto *member = llvm::dyn_cast<clang::MemberExpr>(expr)) {
      if (struct cuda_expr *made = builtin_of(member)) return made;
      struct cuda_expr *made = new_expr(EXPR_MEMBER, expr);
      made->name = arena_strdup(arena, member->getMemberDecl()->getNameAsString().c_str());
      made->a = read_expr(member->getBase());
      if (member->isArrow()) {
        struct cuda_expr *pointed = new_expr(EXPR_DEREF, expr);
        pointed->type = type_of(member->getBase()->getType()->getPointeeType());
        pointed->a = made->a;
        made->a = pointed;
      }
      if (const auto *field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl()))
        made->integer = (int64_t)(context.getFieldOffset(field) / 8);
      return made;
    }
    if (const auto *subscript = llvm::dyn_cast<clang::ArraySubscriptExpr>(expr)) {
      struct cuda_expr *made = new_expr(EXPR_INDEX, expr);
      made->a = read_expr(subscript->getBase());
      made->b = read_expr(subscript->getIdx());
      return made;
    }
    if (const auto *unary = llvm::dyn_cast<clang::UnaryOperator>(expr)) return read_unary(unary);
    if (const auto *binary = llvm::dyn_cast<clang::BinaryOperator>(expr)) {
      enum cuda_op op = operator_of(binary->getOpcode());
      bool assigns = binary->isAssignmentOp();
      struct cuda_expr *made = new_expr(assigns ? EXPR_ASSIGN : op == CUDA_NO_OP ? EXPR_UNKNOWN : EXPR_BINARY, expr);
      made->op = op;
      made->a = read_expr(binary->getLHS());
      made->b = read_expr(binary->getRHS());
      return made;
    }
    if (const auto *choice = llvm::dyn_cast<clang::ConditionalOperator>(expr)) {
      struct cuda_expr *made = new_expr(EXPR_CHOICE, expr);
      made->a = read_expr(choice->getCond());
      made->b = read_expr(choice->getTrueExpr());
      made->c = read_expr(choice->getFalseExpr());
      return made;
    }
    if (const auto *call = llvm::dyn_cast<clang::CallExpr>(expr)) return read_call(call);
    if (const auto *construct = llvm::dyn_cast<clang::CXXConstructExpr>(expr))
      if (construct->getNumArgs() == 1 && construct->getConstructor()->isCopyOrMoveConstructor()) return read_expr(construct->getArg(0));
    struct cuda_expr *made = new_expr(EXPR_UNKNOWN, expr);
    for (const clang::Stmt *child : expr->children())
      if (child && llvm::isa<clang::Expr>(child)) add_operand(made, read_expr(llvm::cast<clang::Expr>(child)));
    return made;
  }

  struct cuda_expr *read_unary(const clang::UnaryOperator *unary) {
    enum cuda_expr_kind kind = EXPR_UNARY;
    enum cuda_op op = CUDA_NO_OP;
    switch (unary->getOpcode()) {
    case clang::UO_PostInc: case clang::UO_PreInc: kind = EXPR_STEP; op = CUDA_ADD; break;
    case clang::UO_PostDec: case clang::UO_PreDec: kind = EXPR_STEP; op = CUDA_SUB; break;
    case clang::UO_AddrOf: kind = EXPR_ADDRESS; break;
    case clang::UO_Deref: kind = EXPR_DEREF; break;
    case clang::UO_Minus: op = CUDA_NEG; break;
    case clang::UO_Not: op = CUDA_NOT; break;
    case clang::UO_LNot: op = CUDA_LNOT; break;
    default: return read_expr(unary->getSubExpr());
    }
    struct cuda_expr *made = new_expr(kind, unary);
    made->op = op;
    made->is_postfix = unary->isPostfix();
    made->a = read_expr(unary->getSubExpr());
    return made;
  }

  struct cuda_expr *read_call(const clang::CallExpr *call) {
    struct cuda_expr *made = new_expr(EXPR_CALL, call);
    const clang::FunctionDecl *callee = call->getDirectCallee();
    if (!callee) {
      made->kind = EXPR_UNKNOWN;
    } else {
      made->name = arena_strdup(arena, callee->getNameAsString().c_str());
      made->function = function_of(callee);
    }
    for (const clang::Expr *argument : call->arguments()) add_operand(made, read_expr(argument));
    return made;
  }

  // ---- Host code: launches

  // An argument of dim3 that says how far y or z of the grid goes.
  bool is_bounded(const clang::Expr *expr) const {
    clang::Expr::EvalResult result;
    if (expr->EvaluateAsInt(result, context)) return low_bits(result.Val.getInt()) < 65536;
    expr = expr->IgnoreParenCasts();
    if (const auto *choice = llvm::dyn_cast<clang::ConditionalOperator>(expr))
      return is_bounded(choice->getTrueExpr()) && is_bounded(choice->getFalseExpr());
    const auto *call = llvm::dyn_cast<clang::CallExpr>(expr);
    const clang::FunctionDecl *callee = call ? call->getDirectCallee() : nullptr;
    if (!callee || callee->getNameAsString() != "min") return false;
    for (const clang::Expr *argument : call->arguments())
      if (is_bounded(argument)) return true;
    return false;
  }

  void read_launch(const clang::CUDAKernelCallExpr *launch) {
    const clang::CallExpr *config = launch->getConfig();
    if (!config || !config->getNumArgs()) return;
    const clang::Expr *grid = config->getArg(0)->IgnoreUnlessSpelledInSource();
    if (const auto *reference = llvm::dyn_cast<clang::DeclRefExpr>(grid))
      if (const auto *variable = llvm::dyn_cast<clang::VarDecl>(reference->getDecl()))
        if (variable->getInit()) grid = variable->getInit()->IgnoreUnlessSpelledInSource();
    const auto *construct = llvm::dyn_cast<clang::CXXConstructExpr>(grid);
    if (!construct) return;
    for (unsigned i = 1; i < construct->getNumArgs() && i < 3; i++) {
      const clang::Expr *argument = construct->getArg(i);
      if (llvm::isa<clang::CXXDefaultArgExpr>(argument) || is_bounded(argument)) continue;
      auto *found = arena_new(arena, struct cuda_launch);
      const clang::FunctionDecl *kernel = launch->getDirectCallee();
      found->kernel = kernel ? arena_strdup(arena, kernel->getNameAsString().c_str()) : "?";
      found->range = places.range(argument->getSourceRange());
      found->dimension = "xyz"[i];
      found->text = arena_strdup(arena, clang::Lexer::getSourceText(clang::CharSourceRange::getTokenRange(argument->getSourceRange()),
                                                                    *places.sources, *places.language).str().c_str());
      list_push(arena, &module->launches, found);
    }
  }

  void read_host(const clang::Stmt *stmt) {
    if (!stmt) return;
    if (const auto *launch = llvm::dyn_cast<clang::CUDAKernelCallExpr>(stmt)) read_launch(launch);
    for (const clang::Stmt *child : stmt->children()) read_host(child);
  }

  clang::ASTContext &context;
  clang_places &places;
  struct cuda_module *module;
  struct arena *arena;
  enum { MAX_DEPTH = 1000 };
  unsigned depth = 0; // of the expression that is read
  std::map<const clang::FunctionDecl *, struct cuda_function *> functions;
  std::map<const clang::VarDecl *, struct cuda_variable *> variables;
};

} // namespace

extern "C" bool inspect_read(struct diag *diag, const struct inspect_request *request, struct cuda_module *module) {
  clang_job job;
  job.path = request->path;
  job.file = request->file;
  job.arguments = {"-xcuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib", "-nogpulib", "-std=c++17", "-ferror-limit=200",
                   "-Wno-unknown-cuda-version"};
  // A toolkit gives its headers; the declarations of CUDA itself are always those above.
  std::string toolkit;
  for (uint32_t i = 0; i < request->argument_count; i++) {
    llvm::StringRef argument = request->arguments[i];
    if (argument.consume_front("--cuda-path="))
      toolkit = argument.str() + "/include";
    else
      job.arguments.push_back(argument.str());
  }
  job.arguments.push_back("-include");
  job.arguments.push_back(BUILTINS_PATH);
  job.headers.push_back({BUILTINS_PATH, BUILTINS});
  for (const char *name : {"cuda_runtime.h", "cuda.h", "device_launch_parameters.h", "cuda_runtime_api.h", "device_functions.h", "vector_types.h",
                           "vector_functions.h", "math_constants.h", "math_functions.h", "sm_30_intrinsics.h"})
    job.headers.push_back({std::string("/red/") + name, ""});
  job.headers.push_back({"/red/red_halves.h", HALVES});
  for (const char *name : {"cuda_fp16.h", "cuda_bf16.h"}) job.headers.push_back({std::string("/red/") + name, "#include \"red_halves.h\"\n"});
  job.arguments.push_back("-I/red");
  if (!toolkit.empty()) job.arguments.insert(job.arguments.end(), {"-isystem", toolkit});
  job.done = [&](clang::ASTContext &context, clang_places &places) {
    reader inspected(context, places, module);
    inspected.forgive_host();
    if (!diag->error_count) inspected.read();
  };
  return clang_front_run(diag, job);
}
