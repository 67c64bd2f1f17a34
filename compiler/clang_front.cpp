#include "compiler/clang_front.h"

#include "compiler/clang_compat.h"
#include "red_clang.h"

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/ASTContext.h"
#include "clang/Frontend/FrontendAction.h"
#include "clang/Lex/Lexer.h"
#include "clang/Lex/Preprocessor.h"
#include "clang/Tooling/CompilationDatabase.h"
#include "clang/Tooling/ArgumentsAdjusters.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <cstring>

// ---- Places

uint32_t clang_places::index(clang::FileID id) {
  if (id == sources->getMainFileID()) return file;
  auto known = files.find(id.getHashValue());
  if (known != files.end()) return known->second;
  llvm::StringRef text = sources->getBufferData(id);
  auto entry = sources->getFileEntryRefForID(id);
  std::string name = entry ? entry->getName().str() : sources->getBufferName(sources->getLocForStartOfFile(id)).str();
  uint32_t added = diag_add_source(diag, arena_strdup(diag->arena, name.c_str()),
                                   arena_strndup(diag->arena, text.data(), text.size()), text.size());
  files[id.getHashValue()] = added;
  return added;
}

struct range clang_places::range(clang::SourceRange where) {
  struct range r = {};
  if (!sources || where.isInvalid()) return r;
  clang::CharSourceRange chars = sources->getExpansionRange(where);
  clang::SourceLocation begin = chars.getBegin(), end = chars.getEnd();
  auto from = sources->getDecomposedLoc(begin);
  auto to = sources->getDecomposedLoc(end);
  if (from.first.isInvalid()) return r;
  if (to.first != from.first || to.second < from.second) to = from;
  unsigned extra = chars.isTokenRange() ? clang::Lexer::MeasureTokenLength(end, *sources, *language) : 0;
  r.file = index(from.first);
  r.line = sources->getLineNumber(from.first, from.second);
  r.column = sources->getColumnNumber(from.first, from.second);
  r.end_line = sources->getLineNumber(to.first, to.second);
  r.end_column = sources->getColumnNumber(to.first, to.second) + (extra ? extra : 1);
  return r;
}

// ---- Diagnostics

namespace {

// Clang's errors become ours; its warnings are the business of whoever compiles the file for the host.
class consumer : public clang::DiagnosticConsumer {
public:
  explicit consumer(clang_places &where) : places(where) {}
  void BeginSourceFile(const clang::LangOptions &options, const clang::Preprocessor *) override {
    places.language = &options;
  }
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic &info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    bool is_error = level >= clang::DiagnosticsEngine::Error;
    bool is_note = level == clang::DiagnosticsEngine::Note && was_error;
    if (level != clang::DiagnosticsEngine::Note) was_error = is_error;
    if (!is_error && !is_note) return;
    if (info.hasSourceManager()) places.sources = &info.getSourceManager();
    llvm::SmallString<128> text;
    info.FormatDiagnostic(text);
    struct range range = {};
    if (info.getLocation().isValid() && info.hasSourceManager() && places.language)
      range = places.range(info.getLocation());
    if (is_note)
      diag_note(places.diag, range, "%s", text.c_str());
    else
      diag_error(places.diag, ERROR_HOST, range, "%s", text.c_str());
  }

private:
  clang_places &places;
  bool was_error = false;
};

class ast_consumer : public clang::ASTConsumer {
public:
  ast_consumer(const clang_job &wanted, clang_places &where) : job(wanted), places(where) {}
  void HandleTranslationUnit(clang::ASTContext &context) override {
    places.use(&context.getSourceManager(), &context.getLangOpts());
    if (job.done) job.done(context, places);
  }

private:
  const clang_job &job;
  clang_places &places;
};

class action : public clang::ASTFrontendAction {
public:
  action(const clang_job &wanted, clang_places &where) : job(wanted), places(where) {}

protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance &instance, llvm::StringRef) override {
    places.use(&instance.getSourceManager(), &instance.getLangOpts());
    if (job.start) job.start(instance, places);
    return std::make_unique<ast_consumer>(job, places);
  }

private:
  const clang_job &job;
  clang_places &places;
};

} // namespace

// ---- Running

bool clang_front_run(struct diag *diag, const clang_job &job) {
  const struct source *source = list_at(&diag->sources, const struct source, job.file);
  uint32_t before = diag->error_count;
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  auto files = clang_compat::real_file_system();
  files->pushOverlay(memory);
  if (!job.folder.empty() && files->setCurrentWorkingDirectory(job.folder)) {
    diag_error(diag, ERROR_FILE, {}, "cannot go to folder '%s'", job.folder.c_str());
    return false;
  }
  std::string path = std::strcmp(job.path, "-") == 0 ? "<stdin>" : job.path;
  // A relative path is one of the current folder, whatever folder the arguments stand in.
  llvm::SmallString<256> absolute(path);
  llvm::sys::fs::make_absolute(absolute);
  memory->addFile(absolute, 0, llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(source->text, source->length)));
  for (const auto &header : job.headers)
    memory->addFile(header.first, 0, llvm::MemoryBuffer::getMemBufferCopy(header.second));

  std::vector<std::string> line = {"redc-clang", "-fsyntax-only"};
  line.insert(line.end(), job.arguments.begin(), job.arguments.end());
  line.insert(line.end(), {"-fno-caret-diagnostics", "-resource-dir", RED_CLANG_RESOURCES, "-Wno-unknown-pragmas", "--", absolute.c_str()});
  clang_places places(diag, job.file);
  consumer messages(places);
  // Counted: the compiler instance keeps a reference of its own and lets it go.
  auto manager = llvm::makeIntrusiveRefCnt<clang::FileManager>(clang::FileSystemOptions(), files);
  clang::tooling::ToolInvocation invocation(line, std::make_unique<action>(job, places), manager.get());
  invocation.setDiagnosticConsumer(&messages);
  bool ok = invocation.run();
  if (!ok && diag->error_count == before && !places.forgiven)
    diag_error(diag, ERROR_HOST, {}, "Clang cannot read '%s' with these arguments", source->name);
  return diag->error_count == before;
}

bool clang_front_database(struct diag *diag, const char *build, clang_job &job) {
  std::string error;
  auto database = clang::tooling::CompilationDatabase::autoDetectFromDirectory(build, error);
  if (!database) {
    diag_error(diag, ERROR_FILE, {}, "no compile_commands.json in '%s' or above", build);
    return false;
  }
  llvm::SmallString<256> absolute(job.path);
  llvm::sys::fs::make_absolute(absolute);
  auto commands = database->getCompileCommands(absolute);
  if (commands.empty()) {
    diag_error(diag, ERROR_FILE, {}, "compile_commands.json of '%s' has no command for '%s'", build, job.path);
    return false;
  }
  auto adjust = clang::tooling::combineAdjusters(clang::tooling::getClangStripOutputAdjuster(),
                                                 clang::tooling::getClangStripDependencyFileAdjuster());
  std::vector<std::string> line = adjust(commands[0].CommandLine, commands[0].Filename);
  job.folder = commands[0].Directory;
  std::vector<std::string> taken;
  for (size_t i = 1; i < line.size(); i++) {
    if (line[i] == commands[0].Filename || line[i] == "-c" || line[i] == "--") continue;
    taken.push_back(line[i]);
  }
  job.arguments.insert(job.arguments.begin(), taken.begin(), taken.end());
  return true;
}
