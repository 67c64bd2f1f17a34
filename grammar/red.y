// Grammar of .red files: pure, LALR(1) without conflicts. Every action makes one node.
//
// Reserved words: kernel reducer ordered schedule for in if else let, and `_`. All others are words only where the
// grammar asks for them, and names elsewhere (`identifier` below).

%code requires {
#include "grammar/red_parser.h"
}

%code {
#include "compiler/ast_build.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

// 2000 levels of what takes the most entries a level. Beyond it bison says "memory exhausted": see yyerror.
#define YYMAXDEPTH 20000

#define YYLLOC_DEFAULT(result, rhs, count)                                                                            \
  do {                                                                                                                \
    if (count) {                                                                                                      \
      (result) = range_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, count));                                                  \
    } else { /* empty: a place of no width behind what came before */                                                 \
      (result) = YYRHSLOC(rhs, 0);                                                                                    \
      (result).line = (result).end_line;                                                                              \
      (result).column = (result).end_column;                                                                          \
    }                                                                                                                 \
  } while (0)

// The actions' constructors: fields of a node, in the arena of the parse.
#define EXPR(where, ...) ast_make_expr(parser->diag, &(struct ast_expr){.range = where, __VA_ARGS__})
#define BINARY(where, operation, left, right) \
  EXPR(where, .kind = AST_BINARY, .binary = AST_##operation, .args = LIST2(left, right))
#define UNARY(where, operation, operand) \
  EXPR(where, .kind = AST_UNARY, .unary = AST_##operation, .args = LIST(operand))
#define STMT(where, ...) ast_make_stmt(parser->diag, &(struct ast_stmt){.range = where, __VA_ARGS__})
#define MAKE(what, where, ...) ast_make_##what(parser->diag, &(struct ast_##what){.range = where, __VA_ARGS__})
#define DIRECTIVE(where, ...) MAKE(directive, where, __VA_ARGS__)
#define NAME_OF(text, where) ((struct ast_name){text, where})
#define NAME_NODE(text, where) ast_make_name(parser->diag, where, text)
#define TEXT(...) arena_printf(parser->diag->arena, __VA_ARGS__)
#define LIST(item) ast_list(parser->diag, item)
#define LIST2(a, b) ast_list_with(parser->diag, LIST(a), b)
#define LIST_WITH(list, item) ast_list_with(parser->diag, list, item)

static int yylex(YYSTYPE *value, struct range *range, struct red_parser *parser);
static void yyerror(const struct range *range, struct red_parser *parser, const char *message);
static char dimension(struct red_parser *parser, const char *text, struct range range);
}

%define api.pure full
%define api.location.type {struct range}
%define parse.error custom
%define parse.lac full
%define lr.default-reduction consistent
%expect 0
%param {struct red_parser *parser}
%initial-action { @$ = (struct range){1, 1, 1, 1, parser->file}; }

// Nothing needs a %destructor: every value is in the arena of the compilation, or no pointer at all.
%union {
  const char *text;
  uint64_t integer;
  struct list list;
  struct ast_expr *expr;
  struct ast_axis *axis;
  struct ast_let *let;
  struct ast_stmt *stmt;
  enum ast_assign_op assign;
  struct ast_param *param;
  struct ast_component *component;
  struct ast_kernel *kernel;
  struct ast_reducer *reducer;
  struct ast_ref *ref;
  struct ast_directive *directive;
  struct ast_schedule *schedule;
  struct { struct list refs, factors; } tile;
  struct { struct ast_name word; char dimension; } place;
  struct { struct ast_expr *size; struct ast_ref along; } unit;
  struct { struct ast_expr *pad; struct ast_ref pad_along; struct list swizzle; } layout;
}

%token YYEOF 0 "end of file"
%token KERNEL "'kernel'" REDUCER "'reducer'" ORDERED "'ordered'" SCHEDULE "'schedule'"
%token FOR "'for'" IN "'in'" IF "'if'" ELSE "'else'" LET "'let'" UNDERSCORE "'_'"
// Words that are names elsewhere, NAME in front: red_tokens.c and the error report go by this order.
%token <text> NAME "a name"
%token <text> MIN "'min'" MAX "'max'" FMIN "'fmin'" FMAX "'fmax'"
%token <text> IDENTITY "'identity'" COMBINE "'combine'" UPDATE "'update'" INIT "'init'" STRIDED "'strided'"
%token <text> WHEN "'when'" AS "'as'" BY "'by'" INTO "'into'" AT "'at'" ALONG "'along'"
%token <text> UNIT "'unit'" PAD "'pad'" SWIZZLE "'swizzle'" DEPTH "'depth'"
%token <text> SHARED "'shared'" REGISTERS "'registers'" BLOCK "'block'" THREAD "'thread'"
%token <text> SPLIT "'split'" FUSE "'fuse'" TILE "'tile'" REORDER "'reorder'" BIND "'bind'" UNROLL "'unroll'"
%token <text> VECTORIZE "'vectorize'" STAGE "'stage'" CACHE "'cache'" BLOCKS "'blocks'" JOIN "'join'"
%token <text> ALLREDUCE "'allreduce'"
%token <text> NUMBERED "a numbered stage"
%token <integer> INTEGER "an integer"
%token <text> FLOAT "a decimal number"
%token ARROW "'->'" DOTS "'..'"
%token ADD_SET "'+='" SUB_SET "'-='" MUL_SET "'*='" AND_SET "'&='" OR_SET "'|='" XOR_SET "'^='"
%token OR_ELSE "'||'" AND_THEN "'&&'" EQ "'=='" NE "'!='" LE "'<='" GE "'>='" SHL "'<<'" SHR "'>>'"

%right '?' ':'
%left OR_ELSE
%left AND_THEN
%left EQ NE
%left '<' LE '>' GE
%left '|'
%left '^'
%left '&'
%left SHL SHR
%left '+' '-'
%left '*' '/' '%'
%precedence PREFIX

%type <text> identifier binder
%type <list> type_params names binders tuple_names inputs params strides stride_list exprs some_exprs axes
%type <list> stmts block opt_else targets lets components directives refs stage_names
%type <expr> expr postfix reduction body expr_block opt_guard opt_init opt_when opt_factor opt_phase opt_depth target stride
%type <axis> axis
%type <let> let
%type <stmt> stmt simple_stmt if_stmt
%type <assign> assign
%type <param> param
%type <component> component
%type <kernel> kernel
%type <reducer> reducer reducer_body
%type <ref> ref
%type <directive> directive
%type <schedule> schedule
%type <tile> tile
%type <place> place
%type <unit> opt_unit
%type <layout> opt_layout
%type <text> opt_as opt_by memory stage_name

%%

file:
    items
  ;

items:
    %empty
  | items kernel    { list_push(parser->diag->arena, &parser->ast->kernels, $2); }
  | items reducer   { list_push(parser->diag->arena, &parser->ast->reducers, $2); }
  | items schedule  { list_push(parser->diag->arena, &parser->ast->schedules, $2); }
  | items error
  ;

// ---- Names

identifier:
    NAME | MIN | MAX | FMIN | FMAX | IDENTITY | COMBINE | UPDATE | INIT | STRIDED | WHEN | AS | BY | INTO | AT | ALONG
  | UNIT | PAD | SWIZZLE | DEPTH | SHARED | REGISTERS | BLOCK | THREAD | SPLIT | FUSE | TILE | REORDER | BIND | UNROLL
  | VECTORIZE | STAGE | CACHE | BLOCKS | JOIN | ALLREDUCE
  ;

binder:
    identifier
  | UNDERSCORE  { $$ = "_"; }
  ;

names:
    identifier            { $$ = LIST(NAME_NODE($1, @1)); }
  | names ',' identifier  { $$ = LIST_WITH($1, NAME_NODE($3, @3)); }
  ;

binders:
    binder              { $$ = LIST(NAME_NODE($1, @1)); }
  | binders ',' binder  { $$ = LIST_WITH($1, NAME_NODE($3, @3)); }
  ;

// ---- Kernels

// A header with an error does not hide the errors of the body.
kernel:
    kernel_word identifier type_params '(' inputs ')' ARROW '(' params ')' block
    { $$ = MAKE(kernel, @$, .name = NAME_OF($2, @2), .type_params = $3, .inputs = $5, .outputs = $9, .body = $11); }
  | kernel_word error block
    { $$ = MAKE(kernel, @$, .name = NAME_OF("", @1), .body = $3); }
  | kernel_word error
    { $$ = MAKE(kernel, @$, .name = NAME_OF("", @1)); }
  ;

kernel_word:
    KERNEL  { yyerrok; }
  ;

type_params:
    %empty         { $$ = (struct list){0}; }
  | '<' names '>'  { $$ = $2; }
  ;

inputs:
    %empty  { $$ = (struct list){0}; }
  | params
  ;

params:
    param             { $$ = LIST($1); }
  | params ',' param  { $$ = LIST_WITH($1, $3); }
  ;

param:
    identifier ':' identifier
    { $$ = MAKE(param, @$, .name = NAME_OF($1, @1), .type = NAME_OF($3, @3)); }
  | identifier ':' identifier '[' exprs ']'
    { $$ = MAKE(param, @$, .name = NAME_OF($1, @1), .type = NAME_OF($3, @3), .is_tensor = true, .dims = $5); }
  | identifier ':' identifier '[' exprs ']' STRIDED
    { $$ = MAKE(param, @$, .name = NAME_OF($1, @1), .type = NAME_OF($3, @3), .is_tensor = true, .dims = $5,
                .is_strided = true); }
  | identifier ':' identifier '[' exprs ']' STRIDED '(' strides ')'
    { $$ = MAKE(param, @$, .name = NAME_OF($1, @1), .type = NAME_OF($3, @3), .is_tensor = true, .dims = $5,
                .is_strided = true, .has_strides = true, .strides = $9); }
  ;

strides:
    %empty  { $$ = (struct list){0}; }
  | stride_list
  ;

stride_list:
    stride                  { $$ = LIST($1); }
  | stride_list ',' stride  { $$ = LIST_WITH($1, $3); }
  ;

stride:
    expr
  | UNDERSCORE  { $$ = NULL; }
  ;

// ---- Statements

block:
    '{' stmts '}'        { $$ = $2; }
  | '{' stmts error '}'  { $$ = $2; yyerrok; }
  ;

stmts:
    %empty           { $$ = (struct list){0}; }
  | stmts stmt       { $$ = LIST_WITH($1, $2); }
  | stmts error ';'  { $$ = $1; yyerrok; }
  ;

stmt:
    simple_stmt ';'
  | FOR axes block  { $$ = STMT(@$, .kind = AST_FOR, .axes = $2, .body = $3); }
  | if_stmt
  ;

simple_stmt:
    let
    { $$ = STMT(@$, .kind = AST_LET, .let = $1); }
  | target assign expr
    { $$ = STMT(@$, .kind = AST_ASSIGN, .targets = LIST($1), .operation = $2, .value = $3); }
  | '(' targets ')' assign expr
    { $$ = STMT(@$, .kind = AST_ASSIGN, .targets = $2, .is_tuple = true, .operation = $4, .value = $5); }
  ;

if_stmt:
    IF expr block opt_else  { $$ = STMT(@$, .kind = AST_IF, .condition = $2, .body = $3, .otherwise = $4); }
  ;

opt_else:
    %empty        { $$ = (struct list){0}; }
  | ELSE block    { $$ = $2; }
  | ELSE if_stmt  { $$ = LIST($2); }
  ;

let:
    LET binder '=' expr
    { $$ = MAKE(let, @$, .names = LIST(NAME_NODE($2, @2)), .value = $4); }
  | LET tuple_names '=' expr
    { $$ = MAKE(let, @$, .names = $2, .is_tuple = true, .value = $4); }
  ;

tuple_names:
    '(' binders ')'  { $$ = $2; }
  ;

targets:
    target              { $$ = LIST($1); }
  | targets ',' target  { $$ = LIST_WITH($1, $3); }
  ;

target:
    identifier '[' exprs ']'  { $$ = EXPR(@$, .kind = AST_ACCESS, .name = NAME_OF($1, @1), .args = $3); }
  | UNDERSCORE                { $$ = EXPR(@$, .kind = AST_NAME, .name = NAME_OF("_", @1)); }
  ;

assign:
    '='       { $$ = AST_ASSIGN_SET; }
  | ADD_SET   { $$ = AST_ASSIGN_ADD; }
  | SUB_SET   { $$ = AST_ASSIGN_SUB; }
  | MUL_SET   { $$ = AST_ASSIGN_MUL; }
  | AND_SET   { $$ = AST_ASSIGN_AND; }
  | OR_SET    { $$ = AST_ASSIGN_OR; }
  | XOR_SET   { $$ = AST_ASSIGN_XOR; }
  | MIN '='   { $$ = AST_ASSIGN_MIN; }
  | MAX '='   { $$ = AST_ASSIGN_MAX; }
  | FMIN '='  { $$ = AST_ASSIGN_FMIN; }
  | FMAX '='  { $$ = AST_ASSIGN_FMAX; }
  ;

axes:
    axis           { $$ = LIST($1); }
  | axes ',' axis  { $$ = LIST_WITH($1, $3); }
  ;

axis:
    identifier IN expr
    { $$ = MAKE(axis, @$, .name = NAME_OF($1, @1), .hi = $3); }
  | identifier IN expr DOTS expr
    { $$ = MAKE(axis, @$, .name = NAME_OF($1, @1), .lo = $3, .hi = $5); }
  ;

// ---- Expressions

exprs:
    %empty  { $$ = (struct list){0}; }
  | some_exprs
  ;

some_exprs:
    expr                 { $$ = LIST($1); }
  | some_exprs ',' expr  { $$ = LIST_WITH($1, $3); }
  ;

expr:
    postfix
  | reduction
  | '-' expr %prec PREFIX  { $$ = UNARY(@$, NEG, $2); }
  | '!' expr %prec PREFIX  { $$ = UNARY(@$, NOT, $2); }
  | '~' expr %prec PREFIX  { $$ = UNARY(@$, BIT_NOT, $2); }
  | expr OR_ELSE expr      { $$ = BINARY(@$, OR_ELSE, $1, $3); }
  | expr AND_THEN expr     { $$ = BINARY(@$, AND_THEN, $1, $3); }
  | expr EQ expr           { $$ = BINARY(@$, EQ, $1, $3); }
  | expr NE expr           { $$ = BINARY(@$, NE, $1, $3); }
  | expr '<' expr          { $$ = BINARY(@$, LT, $1, $3); }
  | expr LE expr           { $$ = BINARY(@$, LE, $1, $3); }
  | expr '>' expr          { $$ = BINARY(@$, GT, $1, $3); }
  | expr GE expr           { $$ = BINARY(@$, GE, $1, $3); }
  | expr '|' expr          { $$ = BINARY(@$, BIT_OR, $1, $3); }
  | expr '^' expr          { $$ = BINARY(@$, BIT_XOR, $1, $3); }
  | expr '&' expr          { $$ = BINARY(@$, BIT_AND, $1, $3); }
  | expr SHL expr          { $$ = BINARY(@$, SHL, $1, $3); }
  | expr SHR expr          { $$ = BINARY(@$, SHR, $1, $3); }
  | expr '+' expr          { $$ = BINARY(@$, ADD, $1, $3); }
  | expr '-' expr          { $$ = BINARY(@$, SUB, $1, $3); }
  | expr '*' expr          { $$ = BINARY(@$, MUL, $1, $3); }
  | expr '/' expr          { $$ = BINARY(@$, DIV, $1, $3); }
  | expr '%' expr          { $$ = BINARY(@$, MOD, $1, $3); }
  | expr '?' expr ':' expr
    { $$ = EXPR(@$, .kind = AST_TERNARY, .args = LIST_WITH(LIST2($1, $3), $5)); }
  ;

postfix:
    INTEGER                   { $$ = EXPR(@$, .kind = AST_INT, .integer = $1); }
  | FLOAT                     { $$ = ast_make_float(parser->diag, @$, $1); }
  | identifier                { $$ = EXPR(@$, .kind = AST_NAME, .name = NAME_OF($1, @1)); }
  | NUMBERED                  { $$ = EXPR(@$, .kind = AST_NAME, .name = NAME_OF($1, @1)); }
  | identifier '[' exprs ']'  { $$ = EXPR(@$, .kind = AST_ACCESS, .name = NAME_OF($1, @1), .args = $3); }
  | identifier '(' exprs ')'  { $$ = EXPR(@$, .kind = AST_CALL, .name = NAME_OF($1, @1), .args = $3); }
  | postfix '.' identifier    { $$ = EXPR(@$, .kind = AST_FIELD, .args = LIST($1), .name = NAME_OF($3, @3)); }
  | '(' expr ')'              { $$ = $2; $$->range = @$; }
  | '(' some_exprs ',' expr ')'
    { $$ = EXPR(@$, .kind = AST_TUPLE, .args = LIST_WITH($2, $4)); }
  ;

reduction:
    identifier '(' axes opt_guard opt_init ')' body
    { $$ = EXPR(@$, .kind = AST_REDUCE, .name = NAME_OF($1, @1), .axes = $3, .guard = $4, .init = $5,
                .args = LIST($7)); }
  ;

opt_guard:
    %empty   { $$ = NULL; }
  | IF expr  { $$ = $2; }
  ;

opt_init:
    %empty             { $$ = NULL; }
  | ';' INIT '=' expr  { $$ = $4; }
  ;

body:
    postfix
  | reduction
  | expr_block
  ;

expr_block:
    '{' lets expr '}'   { $$ = EXPR(@$, .kind = AST_BLOCK, .lets = $2, .args = LIST($3)); }
  | '{' lets error '}'  { $$ = EXPR(@$, .kind = AST_INT); yyerrok; }
  ;

lets:
    %empty          { $$ = (struct list){0}; }
  | lets let ';'    { $$ = LIST_WITH($1, $2); }
  | lets error ';'  { $$ = $1; }
  ;

// ---- Reducers

reducer:
    reducer_word reducer_body          { $$ = $2; $$->range = @$; }
  | ORDERED reducer_word reducer_body  { $$ = $3; $$->range = @$; $$->is_ordered = true; }
  ;

reducer_word:
    REDUCER  { yyerrok; }
  ;

reducer_body:
    identifier type_params '(' components ')' '{'
      IDENTITY expr ';'
      COMBINE '(' identifier ',' identifier ')' expr_block
    '}'
    { $$ = MAKE(reducer, @$, .name = NAME_OF($1, @1), .type_params = $2, .components = $4, .identity = $8,
                .combine_params = LIST2(NAME_NODE($12, @12), NAME_NODE($14, @14)), .combine = $16); }
  | identifier type_params '(' components ')' '{'
      IDENTITY expr ';'
      COMBINE '(' identifier ',' identifier ')' expr_block
      UPDATE '(' names ')' expr_block
    '}'
    { $$ = MAKE(reducer, @$, .name = NAME_OF($1, @1), .type_params = $2, .components = $4, .identity = $8,
                .combine_params = LIST2(NAME_NODE($12, @12), NAME_NODE($14, @14)), .combine = $16,
                .update_params = $19, .update = $21); }
  ;

components:
    component                 { $$ = LIST($1); }
  | components ',' component  { $$ = LIST_WITH($1, $3); }
  ;

component:
    identifier ':' identifier
    { $$ = ast_make_component(parser->diag, &(struct ast_component){NAME_OF($1, @1), NAME_OF($3, @3)}); }
  ;

// ---- Schedules

schedule:
    schedule_word identifier opt_as opt_when '{' directives '}'
    { $$ = MAKE(schedule, @$, .kernel = NAME_OF($2, @2), .name = NAME_OF($3, @3), .when = $4, .directives = $6); }
  | schedule_word identifier opt_as opt_when '{' directives error '}'
    { $$ = MAKE(schedule, @$, .kernel = NAME_OF($2, @2), .directives = $6); yyerrok; }
  | schedule_word error '{' directives '}'
    { $$ = MAKE(schedule, @$, .kernel = NAME_OF("", @1), .directives = $4); }
  | schedule_word error '{' directives error '}'
    { $$ = MAKE(schedule, @$, .kernel = NAME_OF("", @1), .directives = $4); yyerrok; }
  | schedule_word error
    { $$ = MAKE(schedule, @$, .kernel = NAME_OF("", @1)); }
  ;

schedule_word:
    SCHEDULE  { yyerrok; }
  ;

opt_as:
    %empty         { $$ = NULL; }
  | AS identifier  { $$ = $2; @$ = @2; }
  ;

opt_when:
    %empty     { $$ = NULL; }
  | WHEN expr  { $$ = $2; }
  ;

directives:
    %empty                    { $$ = (struct list){0}; }
  | directives directive ';'  { $$ = LIST_WITH($1, $2); }
  | directives error ';'      { $$ = $1; yyerrok; }
  ;

directive:
    SPLIT ref BY expr ARROW identifier ',' identifier
    { $$ = DIRECTIVE(@$, .kind = AST_SPLIT, .refs = LIST($2), .value = $4,
                     .names = LIST2(NAME_NODE($6, @6), NAME_NODE($8, @8))); }
  | SPLIT ref BY expr ALONG identifier ARROW identifier ',' identifier
    { $$ = DIRECTIVE(@$, .kind = AST_SPLIT, .refs = LIST($2), .value = $4, .tensor = NAME_OF($6, @6),
                     .names = LIST2(NAME_NODE($8, @8), NAME_NODE($10, @10))); }
  | SPLIT ref INTO expr ARROW identifier ',' identifier
    { $$ = DIRECTIVE(@$, .kind = AST_SPLIT, .refs = LIST($2), .value = $4, .is_into = true,
                     .names = LIST2(NAME_NODE($6, @6), NAME_NODE($8, @8))); }
  | FUSE refs ARROW identifier
    { $$ = DIRECTIVE(@$, .kind = AST_FUSE, .refs = $2, .names = LIST(NAME_NODE($4, @4))); }
  | TILE tile ARROW names
    { $$ = DIRECTIVE(@$, .kind = AST_TILE, .refs = $2.refs, .values = $2.factors, .names = $4); }
  | REORDER refs
    { $$ = DIRECTIVE(@$, .kind = AST_REORDER, .refs = $2); }
  | BIND ref ARROW place
    { $$ = DIRECTIVE(@$, .kind = AST_BIND, .refs = LIST($2), .word = $4.word, .dimension = $4.dimension); }
  | UNROLL ref opt_factor
    { $$ = DIRECTIVE(@$, .kind = AST_UNROLL, .refs = LIST($2), .value = $3); }
  | VECTORIZE refs
    { $$ = DIRECTIVE(@$, .kind = AST_VECTORIZE, .refs = $2); }
  | STAGE identifier AT ref IN memory opt_as opt_unit opt_phase opt_layout opt_depth opt_by
    { $$ = DIRECTIVE(@$, .kind = AST_STAGE, .tensor = NAME_OF($2, @2), .at = *$4, .word = NAME_OF($6, @6),
                     .alias = NAME_OF($7, @7), .unit = $8.size, .along = $8.along, .phase = $9, .pad = $10.pad,
                     .pad_along = $10.pad_along, .swizzle = $10.swizzle, .depth = $11, .by = NAME_OF($12, @12)); }
  | CACHE identifier BY identifier
    { $$ = DIRECTIVE(@$, .kind = AST_CACHE, .names = LIST(NAME_NODE($2, @2)), .word = NAME_OF($4, @4)); }
  | BLOCKS expr
    { $$ = DIRECTIVE(@$, .kind = AST_BLOCKS, .value = $2); }
  | JOIN stage_names
    { $$ = DIRECTIVE(@$, .kind = AST_JOIN, .names = $2); }
  | ALLREDUCE refs BY identifier
    { $$ = DIRECTIVE(@$, .kind = AST_ALLREDUCE, .refs = $2, .word = NAME_OF($4, @4)); }
  | COMBINE ref BY identifier
    { $$ = DIRECTIVE(@$, .kind = AST_COMBINE, .refs = LIST($2), .word = NAME_OF($4, @4)); }
  ;

// `B.combine.j`: the stage that a second kernel's combine makes.
ref:
    identifier
    { $$ = MAKE(ref, @$, .axis = NAME_OF($1, @1)); }
  | stage_name '.' identifier
    { $$ = MAKE(ref, @$, .stage = NAME_OF($1, @1), .axis = NAME_OF($3, @3)); }
  | stage_name '.' identifier '.' identifier
    { $$ = MAKE(ref, @$, .stage = NAME_OF(TEXT("%s.%s", $1, $3), range_join(@1, @3)), .axis = NAME_OF($5, @5)); }
  ;

refs:
    ref           { $$ = LIST($1); }
  | refs ',' ref  { $$ = LIST_WITH($1, $3); }
  ;

stage_name:
    identifier
  | NUMBERED
  ;

stage_names:
    stage_name                  { $$ = LIST(NAME_NODE($1, @1)); }
  | stage_names ',' stage_name  { $$ = LIST_WITH($1, NAME_NODE($3, @3)); }
  ;

tile:
    ref BY expr           { $$.refs = LIST($1); $$.factors = LIST($3); }
  | tile ',' ref BY expr  { $$.refs = LIST_WITH($1.refs, $3); $$.factors = LIST_WITH($1.factors, $5); }
  ;

place:
    BLOCK '.' identifier   { $$.word = NAME_OF("block", @1); $$.dimension = dimension(parser, $3, @3); }
  | THREAD '.' identifier  { $$.word = NAME_OF("thread", @1); $$.dimension = dimension(parser, $3, @3); }
  ;

memory:
    SHARED
  | REGISTERS
  ;

opt_factor:
    %empty   { $$ = NULL; }
  | BY expr  { $$ = $2; }
  ;

opt_unit:
    %empty               { $$.size = NULL; $$.along = (struct ast_ref){0}; }
  | UNIT expr ALONG ref  { $$.size = $2; $$.along = *$4; }
  ;

opt_phase:
    %empty      { $$ = NULL; }
  | ALONG expr  { $$ = $2; }
  ;

opt_layout:
    %empty              { $$.pad = NULL; $$.pad_along = (struct ast_ref){0}; $$.swizzle = (struct list){0}; }
  | PAD expr            { $$.pad = $2; $$.pad_along = (struct ast_ref){0}; $$.swizzle = (struct list){0}; }
  | PAD expr ALONG ref  { $$.pad = $2; $$.pad_along = *$4; $$.swizzle = (struct list){0}; }
  | SWIZZLE expr ',' expr ',' expr
    { $$.pad = NULL; $$.pad_along = (struct ast_ref){0}; $$.swizzle = LIST_WITH(LIST2($2, $4), $6); }
  ;

opt_depth:
    %empty      { $$ = NULL; }
  | DEPTH expr  { $$ = $2; }
  ;

opt_by:
    %empty         { $$ = NULL; }
  | BY identifier  { $$ = $2; @$ = @2; }
  ;

%%

typedef void *yyscan_t;
int red_yylex_init_extra(struct red_parser *extra, yyscan_t *scanner);
int red_yylex_destroy(yyscan_t scanner);
struct yy_buffer_state *red_yy_scan_buffer(char *bytes, size_t size, yyscan_t scanner);

static int yylex(YYSTYPE *value, struct range *range, struct red_parser *parser) {
  struct red_token token = red_tokens_next(parser);
  *range = token.range;
  if (token.kind == INTEGER)
    value->integer = token.integer;
  else
    value->text = token.text;
  return token.kind;
}

// Bison calls this for one thing only: its stack is full.
static void yyerror(const struct range *range, struct red_parser *parser, const char *message) {
  (void)message;
  diag_error(parser->diag, ERROR_NESTING, *range, "the text nests too deeply here");
}

static char dimension(struct red_parser *parser, const char *text, struct range range) {
  if ((text[0] == 'x' || text[0] == 'y' || text[0] == 'z') && !text[1]) return text[0];
  diag_error(parser->diag, ERROR_SYNTAX, range, "unexpected name '%s', expected 'x', 'y' or 'z'", text);
  return 'x';
}

// ---- Syntax errors in human words

// Sets of tokens that have a name as a whole. Where all of a set may stand, its name does for them; the other tokens
// that come along with the set (`quiet`) are not named at all.
static const struct {
  const char *words;
  int tokens[20], quiet[4]; // 0 at the end
} token_sets[] = {
    {"a statement", {FOR, IF, LET, UNDERSCORE, NAME, '('}, {0}},
    {"an expression", {NAME, INTEGER, FLOAT, '(', '-', '!', '~'}, {0}},
    {"a number", {INTEGER, FLOAT}, {0}},
    {"an operator",
     {'+', '-', '*', '/', '%', '&', '|', '^', SHL, SHR, '<', LE, '>', GE, EQ, NE, AND_THEN, OR_ELSE, '?'},
     {'[', '(', '.'}},
    {"a fold such as '+='", {ADD_SET, SUB_SET, MUL_SET, AND_SET, OR_SET, XOR_SET, MIN, MAX, FMIN, FMAX}, {0}},
    {"a directive",
     {SPLIT, FUSE, TILE, REORDER, BIND, UNROLL, VECTORIZE, STAGE, CACHE, BLOCKS, JOIN, ALLREDUCE, COMBINE},
     {0}},
};
enum { TOKEN_SETS = sizeof token_sets / sizeof *token_sets, NAMED_AT_MOST = 5 };

// Replaces tokens by the names of their sets. Returns how many words there are.
static int name_expected(bool *expected, const char **words) {
  const char *sets[TOKEN_SETS];
  int count = 0, set_count = 0;
  if (expected[YYSYMBOL_NAME]) // then the words that may be names stand for nothing else
    for (int symbol = YYSYMBOL_MIN; symbol <= YYSYMBOL_NUMBERED; symbol++) expected[symbol] = false;
  for (int i = 0; i < TOKEN_SETS; i++) {
    const int *tokens = token_sets[i].tokens, *quiet = token_sets[i].quiet;
    while (*tokens && expected[YYTRANSLATE(*tokens)]) tokens++;
    if (*tokens) continue;
    sets[set_count++] = token_sets[i].words;
    for (tokens = token_sets[i].tokens; *tokens; tokens++) expected[YYTRANSLATE(*tokens)] = false;
    for (; *quiet; quiet++) expected[YYTRANSLATE(*quiet)] = false;
  }
  for (int i = 0; i < YYNTOKENS; i++) { // punctuation first: it comes after the words
    int symbol = (i + YYSYMBOL_SHR + 1) % YYNTOKENS;
    if (expected[symbol]) words[count++] = yysymbol_name((yysymbol_kind_t)symbol);
  }
  for (int i = 0; i < set_count; i++) words[count++] = sets[i];
  return count;
}

// "unexpected name 'x'": the token in the words of the source.
static void describe_found(struct red_parser *parser, yysymbol_kind_t symbol, const struct range *range,
                           struct text *out) {
  if (symbol == YYSYMBOL_YYEOF) {
    text_puts(out, "unexpected end of file");
    return;
  }
  const char *kind = "";
  if (symbol == YYSYMBOL_NAME) kind = "name ";
  if (symbol == YYSYMBOL_INTEGER || symbol == YYSYMBOL_FLOAT) kind = "number ";
  const struct source *source = list_at(&parser->diag->sources, struct source, parser->file);
  int length = (int)(range->end_column - range->column), most = 40;
  text_printf(out, "unexpected %s'%.*s%s'", kind, length > most ? most : length,
              source->lines[range->line - 1] + range->column - 1, length > most ? "..." : "");
}

static int yyreport_syntax_error(const yypcontext_t *context, struct red_parser *parser) {
  if (!red_tokens_error(parser)) return 0;
  bool expected[YYNTOKENS] = {false};
  yysymbol_kind_t symbols[YYNTOKENS];
  int symbol_count = yypcontext_expected_tokens(context, symbols, YYNTOKENS);
  for (int i = 0; i < symbol_count; i++) expected[symbols[i]] = true;
  bool may_end = expected[YYTRANSLATE(';')];
  const char *words[YYNTOKENS + TOKEN_SETS];
  int count = name_expected(expected, words);

  const struct range *range = yypcontext_location(context);
  struct text message = {0};
  describe_found(parser, yypcontext_token(context), range, &message);
  for (int i = 0; i < count && i < NAMED_AT_MOST; i++)
    text_printf(&message, "%s%s", i == 0 ? ", expected " : i + 1 == count ? " or " : ", ", words[i]);
  if (count > NAMED_AT_MOST) text_puts(&message, " and others");
  diag_error(parser->diag, ERROR_SYNTAX, *range, "%s", message.data);
  struct range before = parser->previous_end;
  if (may_end && before.line < range->line) diag_note(parser->diag, before, "a ';' may be missing here");
  text_free(&message);
  return 0;
}

// What flex scans: the text and the two zeros that it wants behind it. Zeros inside take flex time quadratic in a run of
// them, so they become another byte that is garbage too.
static char *scanner_text(struct arena *arena, const struct source *source) {
  char *copy = arena_alloc(arena, source->length + 2);
  if (source->length) memcpy(copy, source->text, source->length);
  for (size_t i = 0; i < source->length; i++)
    if (!copy[i]) copy[i] = '\1';
  return copy;
}

bool red_parse(struct diag *diag, uint32_t file, struct ast_file *ast) {
  const struct source *source = list_at(&diag->sources, struct source, file);
  uint32_t errors = diag->error_count;
  struct red_parser parser = {.diag = diag, .ast = ast, .file = file};
  if (source->length > INT_MAX / 2) {
    diag_error(diag, ERROR_FILE, (struct range){1, 1, 1, 1, file}, "file is larger than 1 GiB");
    return false;
  }
  red_tokens_init(&parser);
  if (red_yylex_init_extra(&parser, &parser.scanner) != 0) {
    diag_internal(diag, "parse", (struct range){0}, "the scanner has no memory");
    return false;
  }
  char *copy = scanner_text(diag->arena, source);
  if (setjmp(parser.fatal) == 0) {
    red_yy_scan_buffer(copy, source->length + 2, parser.scanner);
    yyparse(&parser);
  } else {
    diag_internal(diag, "parse", (struct range){0}, "%s", parser.fatal_message);
  }
  red_yylex_destroy(parser.scanner);
  return diag->error_count == errors;
}
