// Clang's front end for the commands of redc-clang: one source, in memory, parsed as the caller's arguments say, its
// diagnostics turned into ours. C++; nothing of Clang leaves the callbacks.
#ifndef RED_COMPILER_CLANG_FRONT_H
#define RED_COMPILER_CLANG_FRONT_H

extern "C" {
#include "compiler/diag.h"
}

#include "clang/Basic/SourceLocation.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace clang {
class ASTContext;
class CompilerInstance;
class LangOptions;
class SourceManager;
} // namespace clang

// Places of Clang as places of ours. Files are registered with `diag` when they are first named.
class clang_places {
public:
  clang_places(struct diag *messages, uint32_t main_file) : diag(messages), file(main_file) {}
  void use(const clang::SourceManager *manager, const clang::LangOptions *options) {
    sources = manager;
    language = options;
  }
  // Where the text stands that was written: inside a macro, its use.
  struct range range(clang::SourceRange where);
  struct range range(clang::SourceLocation begin) { return range(clang::SourceRange(begin, begin)); }

  struct diag *const diag;
  const clang::SourceManager *sources = nullptr;
  const clang::LangOptions *language = nullptr;
  bool forgiven = false; // errors that Clang counted were taken back

private:
  uint32_t index(clang::FileID id);
  uint32_t file; // of the main file
  llvm::DenseMap<unsigned, uint32_t> files; // hash of Clang's FileID to index of ours
};

struct clang_job {
  const char *path = nullptr; // as diagnostics name it; its suffix says the language unless `arguments` do
  uint32_t file = 0;          // its index in diag->sources; the text is there
  std::string folder;         // the working folder of the arguments; empty: the current one
  std::vector<std::string> arguments; // of the compiler, without its name and without the file
  std::vector<std::pair<std::string, std::string>> headers; // name and text of files that exist only here
  // Called when the preprocessor stands and nothing is read yet: pragma handlers, callbacks.
  std::function<void(clang::CompilerInstance &, clang_places &)> start;
  // Called when everything is read; also where Clang reported errors (diag->error_count).
  std::function<void(clang::ASTContext &, clang_places &)> done;
};

// Parses. False after an error, Clang's too; those are ERROR_HOST with Clang's text.
bool clang_front_run(struct diag *diag, const clang_job &job);

// Takes folder and arguments for the job's path from compile_commands.json in `build` or in one of the folders above.
// False after reporting that there is none, or none for this file.
bool clang_front_database(struct diag *diag, const char *build, clang_job &job);

#endif
