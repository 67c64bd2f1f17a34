// Grammar of PTX modules, as LLVM and nvcc write them. It knows directives and the shape of statements; opcodes,
// modifiers and types are words. Every action is one constructor call on the unit's arena, which owns all semantic
// values, so that error recovery has nothing to destroy.
%define api.pure full
%define api.prefix {ptx_yy}
%define api.token.prefix {T_}
%define parse.error custom
%define parse.lac full
%locations
%param {void *scanner}
%parse-param {struct ptx_unit *unit}
%expect 0

%code requires {
#include "runtime/sim/ptx.h"
#include <setjmp.h>

// State of one scan, reachable from the scanner.
struct ptx_scan {
  struct ptx_unit *unit;
  int back;   // scanner state before a comment
  int braces; // open in a skipped section
  const char *fatal;
  jmp_buf out;
};

void ptx_error_set(struct sim_error *error, int line, int column, const char *message);
}

%code {
#include <stdio.h>
#include <string.h>

int ptx_yylex(PTX_YYSTYPE *value, PTX_YYLTYPE *at, void *scanner);

static void ptx_yyerror(PTX_YYLTYPE *at, void *scanner, struct ptx_unit *unit, const char *message) {
  (void)scanner;
  bool is_deep = strcmp(message, "memory exhausted") == 0;
  ptx_fail(unit, (struct ptx_place){at->first_line, at->first_column}, "%s",
           is_deep ? "scopes or lists nest too deeply" : message);
}

#define AT(location) ((struct ptx_place){(location).first_line, (location).first_column})
#define NAME(at, text) ptx_operand_new(unit, AT(at), PTX_NAME, text, 0)
#define INTEGER(at, value) ptx_operand_new(unit, AT(at), PTX_INTEGER, NULL, value)

// Division and remainder of constant expressions; by zero is an error.
static uint64_t divide(struct ptx_unit *unit, struct ptx_place at, uint64_t a, uint64_t b, bool is_remainder) {
  if (b == 0) {
    ptx_fail(unit, at, "division by zero in a constant expression");
    return 0;
  }
  return is_remainder ? a % b : a / b;
}

static uint64_t shift(uint64_t a, uint64_t b, bool is_left) {
  if (b > 63) return 0;
  return is_left ? a << b : a >> b;
}
}

%union {
  const char *text;
  uint64_t value;
  struct ptx_operand *operand;
  struct ptx_dot *dot;
  struct ptx_variable *variable;
  struct ptx_statement *statement;
  struct ptx_tuning *tuning;
  struct ptx_function *function;
  struct ptx_instruction *instruction;
}

%token END 0 "end of text"
%token <text> WORD "name" REGISTER "register" DOT "modifier" STRING "string" LINKAGE "linkage directive"
%token <text> SPACE "state space" TUNING "performance directive"
%token <value> INT "integer" FLOAT32 "32-bit float" FLOAT64 "64-bit float"
%token VERSION ".version" TARGET ".target" ADDRESS_SIZE ".address_size" FILE ".file" LOC ".loc" ENTRY ".entry"
%token FUNC ".func" ALIAS ".alias" ALIGN ".align" PRAGMA ".pragma" BRANCHTARGETS ".branchtargets"
%token CALLPROTOTYPE ".callprototype" ATTRIBUTE ".attribute" LEFT "<<" RIGHT ">>"
%token <value> BAD_CHARACTER "stray character"
%token BAD_COMMENT "comment without end" BAD_SECTION "section without end" BAD_NUMBER "integer over 64 bits"

%left '|'
%left '^'
%left '&'
%left LEFT RIGHT
%left '+' '-'
%left '*' '/' '%'
%precedence UNARY

%type <value> constant leading address_offset
%type <operand> operand operands operand_list reference initial initials names address
%type <dot> dots modifiers
%type <text> any_name linkage
%type <variable> declarator declarators parameter parameters parameter_list parameter_group
%type <statement> statement statements
%type <tuning> tuning tunings
%type <function> function
%type <instruction> instruction

%%

module
  : %empty
  | module item
  ;

item
  : VERSION FLOAT64
    { double version; memcpy(&version, &$2, 8);
      if (version > 9999) version = 9999; // no such version; the casts below stay in range
      unit->version_major = (int)version;
      unit->version_minor = (int)((version - (int)version) * 10 + 0.5); }
  | VERSION INT                 { unit->version_major = (int)($2 & 0xffff); }
  | TARGET names                { unit->target = $2->text; }
  | ADDRESS_SIZE INT            { unit->address_size = $2; }
  | PRAGMA STRING ';'
  | ALIAS WORD ',' WORD ';'
    { ptx_fail(unit, AT(@1), "'.alias' is not supported"); YYABORT; }
  | FILE INT STRING             { ptx_unit_add_file(unit, $2, $3); }
  | FILE INT STRING ',' INT ',' INT { ptx_unit_add_file(unit, $2, $3); }
  | loc
  | linkage SPACE dots declarators ';'
    { ptx_unit_add_variables(unit, ptx_variable_finish($4, $1, $2, $3)); }
  | linkage function ';'        { ptx_unit_add_function(unit, $2, $1); }
  | linkage function '{' statements '}'
    { $2->body = $4; $2->has_body = true; ptx_unit_add_function(unit, $2, $1); }
  ;

linkage
  : %empty                      { $$ = NULL; }
  | LINKAGE                     { $$ = $1; }
  ;

names
  : WORD                        { $$ = NAME(@1, $1); }
  | names ',' WORD              { $$ = ptx_operand_append($1, NAME(@3, $3)); }
  ;

attribute
  : %empty
  | ATTRIBUTE '(' attribute_words ')'
  ;

attribute_words
  : attribute_word
  | attribute_words attribute_word
  ;

attribute_word
  : DOT | WORD | INT | ',' | '(' attribute_words ')'
  ;

loc
  : LOC INT INT INT
    { ptx_unit_add_loc(unit, (struct ptx_loc){(uint32_t)$2, (uint32_t)$3, (uint32_t)$4, 0, 0, 0}); }
  | LOC INT INT INT ',' WORD WORD loc_offset ',' WORD INT INT INT
    { ptx_unit_add_loc(unit, (struct ptx_loc){(uint32_t)$2, (uint32_t)$3, (uint32_t)$4, (uint32_t)$11,
                                              (uint32_t)$12, (uint32_t)$13}); }
  ;

loc_offset
  : %empty
  | '+' INT
  ;

function
  : ENTRY any_name parameter_group attribute tunings
    { $$ = ptx_function_new(unit, AT(@1), true, NULL, $2, $3); $$->tuning = $5; }
  | FUNC attribute any_name parameter_group tunings
    { $$ = ptx_function_new(unit, AT(@1), false, NULL, $3, $4); $$->tuning = $5; }
  | FUNC attribute '(' parameters ')' any_name parameter_group tunings
    { $$ = ptx_function_new(unit, AT(@1), false, $4, $6, $7); $$->tuning = $8; }
  ;

parameter_group
  : %empty                      { $$ = NULL; }
  | '(' parameters ')'          { $$ = $2; }
  ;

parameters
  : %empty                      { $$ = NULL; }
  | parameter_list
  ;

parameter_list
  : parameter
  | parameter_list ',' parameter { $$ = ptx_variable_append($1, $3); }
  ;

parameter
  : SPACE dots declarator       { $$ = ptx_variable_finish($3, NULL, $1, $2); }
  ;

tunings
  : %empty                      { $$ = NULL; }
  | tunings tuning              { $$ = ptx_tuning_append($1, $2); }
  | tunings PRAGMA STRING ';'   { $$ = $1; }
  ;

tuning
  : TUNING
    { $$ = ptx_alloc(&unit->arena, sizeof *$$); $$->text = $1; $$->place = AT(@1); }
  | TUNING INT
    { $$ = ptx_alloc(&unit->arena, sizeof *$$); $$->text = $1; $$->place = AT(@1);
      $$->value[0] = $2; $$->count = 1; }
  | TUNING INT ',' INT
    { $$ = ptx_alloc(&unit->arena, sizeof *$$); $$->text = $1; $$->place = AT(@1);
      $$->value[0] = $2; $$->value[1] = $4; $$->count = 2; }
  | TUNING INT ',' INT ',' INT
    { $$ = ptx_alloc(&unit->arena, sizeof *$$); $$->text = $1; $$->place = AT(@1);
      $$->value[0] = $2; $$->value[1] = $4; $$->value[2] = $6; $$->count = 3; }
  ;

dots
  : %empty                      { $$ = NULL; }
  | dots DOT                    { $$ = ptx_dot_append(unit, $1, $2, 0); }
  | dots SPACE                  { $$ = ptx_dot_append(unit, $1, $2, 0); }
  | dots ALIGN INT              { $$ = ptx_dot_append(unit, $1, "align", $3); }
  | dots ATTRIBUTE '(' attribute_words ')' { $$ = $1; }
  ;

any_name
  : WORD
  | REGISTER
  ;

declarators
  : declarator
  | declarators ',' declarator  { $$ = ptx_variable_append($1, $3); }
  ;

declarator
  : any_name                    { $$ = ptx_variable_new(unit, AT(@1), $1); }
  | any_name '<' INT '>'
    { $$ = ptx_variable_new(unit, AT(@1), $1); $$->has_range = true; $$->range = $3; }
  | declarator '[' ']'          { $$ = ptx_variable_dimension($1, true, 0); }
  | declarator '[' constant ']' { $$ = ptx_variable_dimension($1, false, $3); }
  | declarator '=' initial      { $$ = $1; $$->initial = $3; }
  ;

initial
  : constant                    { $$ = INTEGER(@1, $1); }
  | FLOAT32                     { $$ = ptx_operand_new(unit, AT(@1), PTX_F32, NULL, $1); }
  | FLOAT64                     { $$ = ptx_operand_new(unit, AT(@1), PTX_F64, NULL, $1); }
  | '-' FLOAT64
    { $$ = ptx_operand_new(unit, AT(@1), PTX_F64, NULL, $2 ^ (UINT64_C(1) << 63)); }
  | WORD address_offset         { $$ = ptx_operand_new(unit, AT(@1), PTX_NAME, $1, $2); }
  | WORD '(' WORD ')' address_offset
    { $$ = ptx_operand_new(unit, AT(@1), PTX_GENERIC, $3, $5); }
  | '{' initials '}'            { $$ = ptx_operand_wrap(unit, AT(@1), PTX_LIST, $2, 0); }
  ;

initials
  : initial
  | initials ',' initial        { $$ = ptx_operand_append($1, $3); }
  ;

address_offset
  : %empty                      { $$ = 0; }
  | '+' constant                { $$ = $2; }
  | '-' constant                { $$ = -$2; }
  ;

statements
  : %empty                      { $$ = NULL; }
  | statements statement        { $$ = ptx_statement_append($1, $2); }
  | statements '{' statements '}'
    { $$ = ptx_statement_append($1, ptx_statement_new(unit, AT(@2), PTX_OPEN));
      $$ = ptx_statement_append($$, $3);
      $$ = ptx_statement_append($$, ptx_statement_new(unit, AT(@4), PTX_CLOSE)); }
  | statements loc              { $$ = $1; }
  | statements PRAGMA STRING ';' { $$ = $1; }
  ;

statement
  : SPACE dots declarators ';'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_VARIABLE);
      $$->variables = ptx_variable_finish($3, NULL, $1, $2); }
  | LINKAGE SPACE dots declarators ';'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_VARIABLE);
      $$->variables = ptx_variable_finish($4, $1, $2, $3); }
  | WORD ':'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_LABEL); $$->label = $1; }
  | BRANCHTARGETS names ';'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_TARGETS); $$->targets = $2; }
  | CALLPROTOTYPE parameter_group WORD parameter_group tunings ';'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_PROTOTYPE);
      $$->prototype = ptx_function_new(unit, AT(@1), false, $2, $3, $4); }
  | instruction ';'
    { $$ = ptx_statement_new(unit, AT(@1), PTX_INSTRUCTION); $$->instruction = $1; }
  | '@' any_name instruction ';'
    { $$ = ptx_statement_new(unit, AT(@3), PTX_INSTRUCTION); $$->instruction = $3; $3->guard = $2; }
  | '@' '!' any_name instruction ';'
    { $$ = ptx_statement_new(unit, AT(@4), PTX_INSTRUCTION); $$->instruction = $4; $4->guard = $3;
      $4->guard_is_negated = true; }
  ;

instruction
  : WORD modifiers operands
    { $$ = ptx_alloc(&unit->arena, sizeof *$$); $$->opcode = $1; $$->modifiers = $2; $$->operands = $3;
      $$->operand_count = $3 ? $3->count : 0; }
  ;

modifiers
  : %empty                      { $$ = NULL; }
  | modifiers DOT               { $$ = ptx_dot_append(unit, $1, $2, 0); }
  | modifiers SPACE             { $$ = ptx_dot_append(unit, $1, $2, 0); }
  ;

operands
  : %empty                      { $$ = NULL; }
  | operand_list
  ;

operand_list
  : operand
  | operand_list ',' operand    { $$ = ptx_operand_append($1, $3); }
  ;

reference
  : any_name                    { $$ = NAME(@1, $1); }
  | any_name DOT                { $$ = NAME(@1, $1); $$->component = $2; }
  ;

operand
  : reference
  | any_name '+' constant       { $$ = ptx_operand_new(unit, AT(@1), PTX_NAME, $1, $3); }
  | any_name '-' constant       { $$ = ptx_operand_new(unit, AT(@1), PTX_NAME, $1, -$3); }
  | leading                     { $$ = INTEGER(@1, $1); }
  | FLOAT32                     { $$ = ptx_operand_new(unit, AT(@1), PTX_F32, NULL, $1); }
  | FLOAT64                     { $$ = ptx_operand_new(unit, AT(@1), PTX_F64, NULL, $1); }
  | '-' FLOAT64
    { $$ = ptx_operand_new(unit, AT(@1), PTX_F64, NULL, $2 ^ (UINT64_C(1) << 63)); }
  | '!' reference               { $$ = ptx_operand_wrap(unit, AT(@1), PTX_NOT, $2, 0); }
  | reference '|' reference
    { $$ = ptx_operand_wrap(unit, AT(@1), PTX_PAIR, ptx_operand_append($1, $3), 0); }
  | '{' operand_list '}'        { $$ = ptx_operand_wrap(unit, AT(@1), PTX_LIST, $2, 0); }
  | '(' operands ')'            { $$ = ptx_operand_wrap(unit, AT(@1), PTX_LIST, $2, 0); }
  | '[' address ']'             { $$ = $2; }
  ;

address
  : reference address_offset    { $$ = ptx_operand_wrap(unit, AT(@1), PTX_ADDRESS, $1, $2); }
  | constant                    { $$ = ptx_operand_wrap(unit, AT(@1), PTX_ADDRESS, NULL, $1); }
  ;

leading
  : INT
  | '-' constant %prec UNARY    { $$ = -$2; }
  | '~' constant %prec UNARY    { $$ = ~$2; }
  | leading '+' constant        { $$ = $1 + $3; }
  | leading '-' constant        { $$ = $1 - $3; }
  | leading '*' constant        { $$ = $1 * $3; }
  | leading '/' constant        { $$ = divide(unit, AT(@2), $1, $3, false); }
  | leading '%' constant        { $$ = divide(unit, AT(@2), $1, $3, true); }
  | leading '|' constant        { $$ = $1 | $3; }
  | leading '&' constant        { $$ = $1 & $3; }
  | leading '^' constant        { $$ = $1 ^ $3; }
  | leading LEFT constant       { $$ = shift($1, $3, true); }
  | leading RIGHT constant      { $$ = shift($1, $3, false); }
  ;

constant
  : INT
  | '(' constant ')'            { $$ = $2; }
  | '-' constant %prec UNARY    { $$ = -$2; }
  | '~' constant %prec UNARY    { $$ = ~$2; }
  | constant '+' constant       { $$ = $1 + $3; }
  | constant '-' constant       { $$ = $1 - $3; }
  | constant '*' constant       { $$ = $1 * $3; }
  | constant '/' constant       { $$ = divide(unit, AT(@2), $1, $3, false); }
  | constant '%' constant       { $$ = divide(unit, AT(@2), $1, $3, true); }
  | constant '|' constant       { $$ = $1 | $3; }
  | constant '&' constant       { $$ = $1 & $3; }
  | constant '^' constant       { $$ = $1 ^ $3; }
  | constant LEFT constant      { $$ = shift($1, $3, true); }
  | constant RIGHT constant     { $$ = shift($1, $3, false); }
  ;

%%

// "unexpected X, expected A, B or C", with the text of a stray character.
static int yyreport_syntax_error(const yypcontext_t *context, void *scanner, struct ptx_unit *unit) {
  (void)scanner;
  char message[400];
  yysymbol_kind_t found = yypcontext_token(context);
  size_t used = (size_t)snprintf(message, sizeof message, "unexpected %s",
                                 found == YYSYMBOL_YYEMPTY ? "text" : yysymbol_name(found));
  yysymbol_kind_t expected[6];
  int count = yypcontext_expected_tokens(context, expected, 6);
  if (count > 5) count = 0;
  for (int i = 0; i < count && used < sizeof message; i++) {
    const char *joint = i == 0 ? ", expected " : i + 1 == count ? " or " : ", ";
    used += (size_t)snprintf(message + used, sizeof message - used, "%s%s", joint, yysymbol_name(expected[i]));
  }
  PTX_YYLTYPE *at = yypcontext_location(context);
  ptx_fail(unit, (struct ptx_place){at->first_line, at->first_column}, "%s", message);
  return 0;
}
