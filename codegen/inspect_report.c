#include "codegen/inspect_report.h"

#include "codegen/inspect_print.h"
#include "compiler/json.h"

#include <inttypes.h>
#include <string.h>

// --- Findings

static const struct {
  const char *name, *why, *fix;
  bool is_performance;
} FINDINGS[] = {
#define F(id, name, is_performance, why, fix) {name, why, fix, is_performance},
#include "codegen/inspect_findings.def"
#undef F
};
const char *finding_name(enum finding_kind kind) { return FINDINGS[kind].name; }
const char *finding_why(enum finding_kind kind) { return FINDINGS[kind].why; }
const char *finding_fix(enum finding_kind kind) { return FINDINGS[kind].fix; }
bool finding_is_performance(enum finding_kind kind) { return FINDINGS[kind].is_performance; }

const char *inspect_text(const struct diag *diag, struct range range) {
  const struct source *source = range.line ? list_at(&diag->sources, const struct source, range.file) : NULL;
  if (!source || !source->text) return "";
  const char *at = source->text, *end = source->text + source->length;
  for (uint32_t line = 1; line < range.line && at < end; at++) line += *at == '\n';
  const char *start = at + range.column - 1, *stop = start;
  if (start > end) return "";
  while (stop < end && *stop != '\n') stop++;
  if (range.end_line == range.line && start + (range.end_column - range.column) < stop) stop = start + (range.end_column - range.column);
  bool is_cut = range.end_line != range.line;
  while (stop > start && (stop[-1] == ' ' || stop[-1] == '{' || stop[-1] == '\r')) stop--;
  const char *copy = arena_strndup(diag->arena, start, (size_t)(stop - start));
  return is_cut ? arena_printf(diag->arena, "%s ...", copy) : copy;
}

// --- The table

static const char *space_text(enum cuda_space space) { return space == SPACE_SHARED ? "shared" : "global"; }

static const char *place_text(struct diag *diag, struct range range) {
  if (!range.line) return "-";
  return arena_printf(diag->arena, "%" PRIu32 ":%" PRIu32, range.line, range.column);
}

static void print_mask(struct text *out, const struct kernel_report *report, const struct inspect_collective *one) {
  if (!one->mask_text && !one->is_known) return;
  text_printf(out, "  mask %s", one->mask_text ? one->mask_text : "0xffffffff");
  if (!one->is_known) {
    text_puts(out, " (not known here)");
    return;
  }
  bool same = true;
  for (uint32_t w = 1; w < one->warp_count; w++) same = same && (!one->arrived[w] || one->masks[w] == one->masks[0]);
  if (same) {
    uint32_t w = 0;
    while (w + 1 < one->warp_count && !one->arrived[w]) w++;
    text_printf(out, " = 0x%08" PRIx32, one->masks[w]);
    return;
  }
  for (uint32_t w = 0; w < one->warp_count; w++)
    if (one->arrived[w] && (w == 0 || !one->arrived[w - 1] || one->masks[w] != one->masks[w - 1]))
      text_printf(out, "%s 0x%08" PRIx32 " from warp %" PRIu32, w ? "," : " =", one->masks[w], report->warps[w]);
}

static void print_access(struct diag *diag, const struct inspect_access *access, struct text *out) {
  text_printf(out, "  %-8s %-6s %-6s %2" PRIu32 " bytes a lane, %2d lanes", place_text(diag, access->range), space_text(access->space),
              access->is_atomic ? "atomic" : access->reads && access->writes ? "update" : access->writes ? "store" : "load", access->bytes,
              __builtin_popcount(access->lanes));
  if (!access->is_known)
    text_puts(out, ", addresses not known");
  else if (access->space == SPACE_SHARED)
    text_printf(out, ", %s", access->conflicts > 1 ? arena_printf(diag->arena, "%" PRIu32 "-way bank conflict", access->conflicts) : "no bank conflict");
  else
    text_printf(out, ", %" PRIu32 " of %" PRIu32 " sectors", access->sectors, access->least_sectors);
  text_printf(out, "  %s\n", access->text);
}

// Whether not the whole block was looked at.
static bool is_part(const struct kernel_report *report) { return report->is_incomplete || report->warp_count < report->block_warps || !report->max_rounds; }

static void print_kernel(struct diag *diag, const struct kernel_report *report, struct text *out) {
  const struct cuda_function *kernel = report->kernel;
  text_printf(out, "kernel %s  (%s)\n", kernel->name, place_text(diag, kernel->range));
  text_printf(out, "  block %" PRIu32 " x %" PRIu32 " x %" PRIu32 "%s", report->block[0], report->block[1], report->block[2],
              report->block_is_assumed ? ", assumed; say it with --block" : "");
  if (kernel->bound_threads) text_printf(out, ", launch bounds %" PRId64, kernel->bound_threads);
  if (kernel->bound_blocks) text_printf(out, " with at least %" PRId64 " blocks a multiprocessor", kernel->bound_blocks);
  text_printf(out, "\n  shared %" PRId64 " bytes", report->shared_bytes);
  for (uint32_t i = 0; i < report->shared.count; i++) {
    const struct cuda_variable *variable = list_at(&report->shared, struct cuda_variable, i);
    text_printf(out, "%s%s %s%s", i ? ", " : ": ", variable->type.spelling, variable->name, variable->is_dynamic ? " (dynamic)" : "");
  }
  text_puts(out, "\n");
  if (report->registers) text_printf(out, "  registers %d\n", report->registers);
  text_puts(out, " parameters\n");
  for (uint32_t i = 0; i < kernel->parameters.count; i++) {
    const struct cuda_variable *parameter = list_at(&kernel->parameters, struct cuda_variable, i);
    text_printf(out, "  %s %s\n", parameter->type.spelling, parameter->name);
  }
  if (report->collectives.count) text_puts(out, " collectives\n");
  for (uint32_t i = 0; i < report->collectives.count; i++) {
    const struct inspect_collective *one = list_at(&report->collectives, struct inspect_collective, i);
    text_printf(out, "  %-8s %s", place_text(diag, one->range), one->name);
    print_mask(out, report, one);
    text_puts(out, "\n");
  }
  if (report->accesses.count) text_puts(out, " accesses\n");
  for (uint32_t i = 0; i < report->accesses.count; i++) print_access(diag, list_at(&report->accesses, struct inspect_access, i), out);
  if (report->loops.count) text_puts(out, " loops\n");
  for (uint32_t i = 0; i < report->loops.count; i++) {
    const struct inspect_loop *loop = list_at(&report->loops, struct inspect_loop, i);
    text_printf(out, "  %-8s ", place_text(diag, loop->range));
    if (loop->trips < 0)
      text_puts(out, "rounds not known");
    else
      text_printf(out, "%" PRId64 " rounds", loop->trips);
    text_printf(out, "  %s\n", loop->text);
  }
  if (is_part(report)) {
    text_puts(out, " looked at\n  warp");
    for (uint32_t w = 0; w < report->warp_count; w++) text_printf(out, "%s %" PRIu32, w ? "," : report->warp_count > 1 ? "s" : "", report->warps[w]);
    text_printf(out, " of the %" PRIu32 " of a block, ", report->block_warps);
    if (report->max_rounds) text_printf(out, "a loop's first %" PRIu32 " rounds", report->max_rounds);
    else text_puts(out, "of a loop its first round and one that stands for all others");
    text_printf(out, "%s\n",
                report->is_incomplete ? "; even that is more than the analysis follows: what stands here is a part of it" : "");
  }
}

void inspect_print(struct diag *diag, const struct kernel_report *reports, uint32_t count, struct text *out) {
  for (uint32_t i = 0; i < count; i++) {
    if (i) text_puts(out, "\n");
    print_kernel(diag, &reports[i], out);
  }
}

// --- JSON

static void json_place(struct text *out, struct range range) {
  text_printf(out, "\"line\": %" PRIu32 ", \"column\": %" PRIu32 ", \"end_line\": %" PRIu32 ", \"end_column\": %" PRIu32, range.line, range.column,
              range.end_line, range.end_column);
}

static void json_access(struct text *out, const struct inspect_access *access) {
  text_puts(out, "{");
  json_place(out, access->range);
  text_puts(out, ", \"text\": ");
  json_string(out, access->text);
  text_puts(out, ", \"variable\": ");
  json_string(out, access->variable);
  text_printf(out, ", \"space\": \"%s\", \"reads\": %s, \"writes\": %s, \"atomic\": %s, \"bytes\": %" PRIu32 ", \"lanes\": %" PRIu32, space_text(access->space),
              access->reads ? "true" : "false", access->writes ? "true" : "false", access->is_atomic ? "true" : "false", access->bytes, access->lanes);
  if (access->is_known) {
    text_puts(out, ", \"offsets\": [");
    for (int lane = 0; lane < INSPECT_WARP; lane++)
      text_printf(out, access->lanes >> lane & 1 ? "%s%" PRId64 : "%snull", lane ? ", " : "", access->offsets[lane]);
    text_puts(out, "]");
    if (access->space == SPACE_SHARED)
      text_printf(out, ", \"conflicts\": %" PRIu32, access->conflicts);
    else
      text_printf(out, ", \"sectors\": %" PRIu32 ", \"least_sectors\": %" PRIu32, access->sectors, access->least_sectors);
  }
  text_puts(out, "}");
}

static void json_collective(struct text *out, const struct kernel_report *report, const struct inspect_collective *one) {
  text_puts(out, "{");
  json_place(out, one->range);
  text_puts(out, ", \"name\": ");
  json_string(out, one->name);
  if (one->mask_text) {
    text_puts(out, ", \"mask\": ");
    json_string(out, one->mask_text);
  }
  if (one->has_sources) {
    text_puts(out, ", \"sources\": [");
    for (int lane = 0; lane < INSPECT_WARP; lane++)
      text_printf(out, one->sources[lane] < 0 ? "%snull" : "%s%" PRId32, lane ? ", " : "", one->sources[lane]);
    text_puts(out, "]");
  }
  text_printf(out, ", \"known\": %s, \"warps\": [", one->is_known ? "true" : "false");
  for (uint32_t w = 0; w < one->warp_count; w++)
    text_printf(out, "%s{\"warp\": %" PRIu32 ", \"mask\": %" PRIu32 ", \"arrived\": %" PRIu32 "}", w ? ", " : "", report->warps[w], one->masks[w], one->arrived[w]);
  text_puts(out, "]}");
}

static void json_kernel(const struct kernel_report *report, struct text *out) {
  const struct cuda_function *kernel = report->kernel;
  text_puts(out, "{\"name\": ");
  json_string(out, kernel->name);
  text_puts(out, ", ");
  json_place(out, kernel->range);
  text_printf(out, ", \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], \"block_assumed\": %s, \"bound_threads\": %" PRId64 ", \"bound_blocks\": %" PRId64
              ", \"shared_bytes\": %" PRId64 ", \"complete\": %s",
              report->block[0], report->block[1], report->block[2], report->block_is_assumed ? "true" : "false", kernel->bound_threads, kernel->bound_blocks,
              report->shared_bytes, report->is_incomplete ? "false" : "true");
  text_printf(out, ", \"rounds_followed\": %" PRIu32 ", \"warps_followed\": [", report->max_rounds);
  for (uint32_t w = 0; w < report->warp_count; w++) text_printf(out, "%s%" PRIu32, w ? ", " : "", report->warps[w]);
  text_puts(out, "]");
  if (report->registers) text_printf(out, ", \"registers\": %d", report->registers);
  text_puts(out, ", \"parameters\": [");
  for (uint32_t i = 0; i < kernel->parameters.count; i++) {
    const struct cuda_variable *parameter = list_at(&kernel->parameters, struct cuda_variable, i);
    text_puts(out, i ? ", {\"name\": " : "{\"name\": ");
    json_string(out, parameter->name);
    text_puts(out, ", \"type\": ");
    json_string(out, parameter->type.spelling);
    text_puts(out, "}");
  }
  text_puts(out, "], \"collectives\": [");
  for (uint32_t i = 0; i < report->collectives.count; i++) {
    text_puts(out, i ? ", " : "");
    json_collective(out, report, list_at(&report->collectives, struct inspect_collective, i));
  }
  text_puts(out, "], \"accesses\": [");
  for (uint32_t i = 0; i < report->accesses.count; i++) {
    text_puts(out, i ? ", " : "");
    json_access(out, list_at(&report->accesses, struct inspect_access, i));
  }
  text_puts(out, "], \"loops\": [");
  for (uint32_t i = 0; i < report->loops.count; i++) {
    const struct inspect_loop *loop = list_at(&report->loops, struct inspect_loop, i);
    text_puts(out, i ? ", {" : "{");
    json_place(out, loop->range);
    text_puts(out, ", \"text\": ");
    json_string(out, loop->text);
    text_printf(out, loop->trips < 0 ? ", \"rounds\": null}" : ", \"rounds\": %" PRId64 "}", loop->trips);
  }
  text_puts(out, "], \"findings\": [");
  for (uint32_t i = 0; i < report->findings.count; i++) {
    const struct finding *finding = list_at(&report->findings, struct finding, i);
    text_puts(out, i ? ", {" : "{");
    json_place(out, finding->range);
    text_printf(out, ", \"kind\": \"%s\", \"message\": ", finding_name(finding->kind));
    json_string(out, finding->message);
    text_puts(out, ", \"why\": ");
    json_string(out, finding_why(finding->kind));
    text_puts(out, ", \"fix\": ");
    json_string(out, finding_fix(finding->kind));
    text_puts(out, "}");
  }
  text_puts(out, "]}");
}

void inspect_json(const char *name, const struct kernel_report *reports, uint32_t count, struct text *out) {
  text_puts(out, "{\"file\": ");
  json_string(out, name);
  text_puts(out, ", \"kernels\": [");
  for (uint32_t i = 0; i < count; i++) {
    text_puts(out, i ? ",\n" : "\n");
    json_kernel(&reports[i], out);
  }
  text_puts(out, "]}\n");
}
