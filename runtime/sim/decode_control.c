// Decodes branches, calls and exits.
#include "runtime/sim/call.h"
#include "runtime/sim/decode.h"

#include <stdlib.h>

static uint32_t label_target(struct sim_decoder *decoder, const struct ptx_operand *operand) {
  struct sim_symbol *symbol = operand->kind == PTX_NAME ? sim_label_find(decoder, operand->text) : NULL;
  if (!symbol || symbol->kind != SIM_SYMBOL_LABEL) {
    sim_fail_at(decoder, operand->place, "'%s' is no label that can be reached from here",
                operand->kind == PTX_NAME ? operand->text : "the target");
  }
  return (uint32_t)symbol->value;
}

void sim_decode_bra(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  sim_take(decoder, "uni");
  sim_operand_count(decoder, 1, 1);
  op->kind = SIM_OP_BRANCH;
  op->target = label_target(decoder, sim_operand_at(decoder, 0));
}

void sim_decode_brx(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  if (!sim_take(decoder, "idx")) sim_fail(decoder, "'brx' needs .idx");
  sim_take(decoder, "uni");
  sim_operand_count(decoder, 2, 2);
  op->kind = SIM_OP_BRANCH_INDEX;
  op->a = sim_source(decoder, 0, SIM_U32);
  const struct ptx_operand *name = sim_operand_at(decoder, 1);
  struct sim_symbol *symbol = name->kind == PTX_NAME ? sim_label_find(decoder, name->text) : NULL;
  if (!symbol || symbol->kind != SIM_SYMBOL_TARGETS) sim_fail(decoder, "'brx.idx' needs a list of targets");
  const struct ptx_operand *target = symbol->statement->targets;
  op->immediate = target->count;
  int32_t first = (int32_t)label_target(decoder, target);
  op->target = sim_list(decoder, &first, 1);
  for (target = target->next; target; target = target->next) {
    int32_t next = (int32_t)label_target(decoder, target);
    sim_list(decoder, &next, 1);
  }
}

void sim_decode_ret(struct sim_decoder *decoder) {
  sim_take(decoder, "uni");
  sim_operand_count(decoder, 0, 0);
  decoder->op->kind = SIM_OP_RETURN;
  decoder->op->target = decoder->function_index;
}

void sim_decode_exit(struct sim_decoder *decoder) {
  sim_operand_count(decoder, 0, 0);
  decoder->op->kind = SIM_OP_EXIT;
}

void sim_decode_trap(struct sim_decoder *decoder) {
  sim_operand_count(decoder, 0, 0);
  decoder->op->kind = SIM_OP_TRAP;
}

// Appends arguments or results to the module's lists.
static void call_values(struct sim_decoder *decoder, const struct ptx_operand *list, bool are_results) {
  for (const struct ptx_operand *item = list ? list->items : NULL; item; item = item->next) {
    int32_t entry[SIM_CALL_STRIDE] = {0};
    struct sim_symbol *symbol = NULL;
    if (item->kind == PTX_NAME && !sim_is_register(decoder, item))
      symbol = sim_symbol_find(decoder, item->text);
    if (symbol && symbol->kind == SIM_SYMBOL_FRAME) {
      entry[SIM_CALL_VALUE] = (int32_t)symbol->value;
      entry[SIM_CALL_BYTES] = (int32_t)symbol->bytes;
    } else if (item->kind == PTX_NAME) {
      uint8_t width;
      enum sim_type declared;
      entry[SIM_CALL_IS_SLOT] = 1;
      entry[SIM_CALL_VALUE] = sim_register_loose(decoder, item, SIM_B8, &width, &declared);
      entry[SIM_CALL_BYTES] = width;
    } else if (item->kind == PTX_INTEGER && !are_results) {
      entry[SIM_CALL_IS_SLOT] = 1;
      entry[SIM_CALL_VALUE] = sim_constant(decoder, item->value, 0, 64);
      entry[SIM_CALL_BYTES] = 64;
    } else if (item->kind == PTX_F32 && !are_results) {
      entry[SIM_CALL_IS_SLOT] = 1;
      entry[SIM_CALL_VALUE] = sim_constant(decoder, item->value, 0, 32);
      entry[SIM_CALL_BYTES] = 32;
    } else {
      sim_fail_at(decoder, item->place, "an argument of 'call' is of the wrong kind");
    }
    sim_list(decoder, entry, SIM_CALL_STRIDE);
  }
}

static size_t length(const struct ptx_operand *list) {
  return list && list->items ? list->items->count : 0;
}

// call (results), function, (arguments), prototype; each but the function may be missing.
void sim_decode_call(struct sim_decoder *decoder) {
  struct sim_op *op = decoder->op;
  sim_take(decoder, "uni");
  sim_operand_count(decoder, 1, 4);
  const struct ptx_operand *operand = decoder->instruction->operands, *results = NULL, *arguments = NULL;
  if (operand->kind == PTX_LIST) {
    results = operand;
    operand = operand->next;
  }
  if (!operand || operand->kind != PTX_NAME) sim_fail(decoder, "'call' needs a function");
  const struct ptx_operand *name = operand;
  operand = operand->next;
  if (operand && operand->kind == PTX_LIST) arguments = operand;
  op->kind = SIM_OP_CALL;
  int32_t header[SIM_CALL_FIRST] = {-1, (int32_t)decoder->function_index, (int32_t)length(arguments),
                                    (int32_t)length(results)};
  if (sim_is_register(decoder, name)) {
    op->a = sim_source_of(decoder, name, SIM_U64);
  } else {
    struct sim_symbol *symbol = sim_symbol_find(decoder, name->text);
    if (!symbol || symbol->kind != SIM_SYMBOL_FUNCTION) {
      sim_fail_at(decoder, name->place, "'%s' is no function that is declared here", name->text);
    }
    const struct sim_function *callee = &decoder->module->functions[symbol->value];
    if (length(arguments) != callee->parameter_count || length(results) != callee->result_count) {
      sim_fail_at(decoder, name->place, "'%s' takes %zu arguments and gives %zu results", name->text,
                  callee->parameter_count, callee->result_count);
    }
    header[SIM_CALL_TARGET] = (int32_t)symbol->value;
  }
  op->target = sim_list(decoder, header, SIM_CALL_FIRST);
  call_values(decoder, arguments, false);
  call_values(decoder, results, true);
}
