// Line tables: every instruction knows the line of the source that it came from.
//
// Without -G the tables are `.loc` directives alone (emission kind 3, DebugDirectivesOnly, which the C API
// takes though its enumeration lacks it): `.target ..., debug` would make ptxas optimise less.
#include "codegen/nvptx.h"

#include <string.h>

enum { DIRECTIVES_ONLY = 3 };

static LLVMMetadataRef file_of(struct nvptx *cg, uint32_t index) {
  const struct list *sources = &cg->context->diag->sources;
  if (index >= sources->count) index = 0;
  if (!cg->files[index]) {
    const char *name = sources->count ? list_at(sources, struct source, index)->name : "<unknown>";
    cg->files[index] = LLVMDIBuilderCreateFile(cg->debug, name, strlen(name), "", 0);
  }
  return cg->files[index];
}

void nvptx_debug_begin(struct nvptx *cg) {
  const struct pass_context *context = cg->context;
  cg->debug = LLVMCreateDIBuilder(cg->module);
  cg->files = arena_array(context->arena, LLVMMetadataRef, context->diag->sources.count + 1);
  LLVMDWARFEmissionKind kind =
      context->options->debug ? LLVMDWARFEmissionFull : (LLVMDWARFEmissionKind)DIRECTIVES_ONLY;
  static const char producer[] = "red";
  cg->unit = LLVMDIBuilderCreateCompileUnit(cg->debug, LLVMDWARFSourceLanguageC99, file_of(cg, 0), producer,
                                            strlen(producer), context->options->optimize > 0, "", 0, 0, "", 0,
                                            kind, 0, false, false, "", 0, "", 0);
  LLVMValueRef version = LLVMConstInt(LLVMInt32TypeInContext(cg->llvm), LLVMDebugMetadataVersion(), false);
  static const char key[] = "Debug Info Version";
  LLVMAddModuleFlag(cg->module, LLVMModuleFlagBehaviorWarning, key, strlen(key),
                    LLVMValueAsMetadata(version));
}

void nvptx_debug_entry(struct nvptx *cg) {
  struct range range = cg->kernel->range;
  LLVMMetadataRef file = file_of(cg, range.file);
  LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(cg->debug, file, NULL, 0, LLVMDIFlagZero);
  const char *name = cg->entry->name;
  cg->subprogram = LLVMDIBuilderCreateFunction(cg->debug, file, name, strlen(name), name, strlen(name), file,
                                               range.line, type, false, true, range.line, LLVMDIFlagZero,
                                               cg->context->options->optimize > 0);
  cg->subprogram_file = range.file;
  LLVMSetSubprogram(cg->function, cg->subprogram);
  LLVMSetCurrentDebugLocation2(cg->builder, NULL); // that of the entry before
  nvptx_debug_at(cg, range);
}

// Places in another file than the kernel's (a reducer of a library) hang on a scope of that file. Ranges
// without a line, and places in files that hold schedules alone, keep the place of what is around them: the code
// does not depend on where its schedule came from.
void nvptx_debug_at(struct nvptx *cg, struct range range) {
  const struct list *sources = &cg->context->diag->sources;
  bool is_schedule = range.file < sources->count && list_at(sources, struct source, range.file)->is_schedule;
  if (range.line == 0 || is_schedule) {
    if (LLVMGetCurrentDebugLocation2(cg->builder)) return;
    if (is_schedule) range = cg->kernel->range;
  }
  LLVMMetadataRef scope = cg->subprogram;
  if (range.line && range.file != cg->subprogram_file)
    scope = LLVMDIBuilderCreateLexicalBlockFile(cg->debug, scope, file_of(cg, range.file), 0);
  LLVMMetadataRef place = LLVMDIBuilderCreateDebugLocation(cg->llvm, range.line, range.column, scope, NULL);
  LLVMSetCurrentDebugLocation2(cg->builder, place);
}

void nvptx_debug_end(struct nvptx *cg) {
  LLVMDIBuilderFinalize(cg->debug);
}
