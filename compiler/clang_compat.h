// Where Clang 19 and Clang 22 differ. The only place that asks for the version. C++.
#ifndef RED_COMPILER_CLANG_COMPAT_H
#define RED_COMPILER_CLANG_COMPAT_H

#include "clang/Basic/Version.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Tooling/Tooling.h"

#if CLANG_VERSION_MAJOR < 19
#error "redc-clang needs Clang 19 or newer"
#endif

namespace clang_compat {

// A file system of `overlay` in front of the real one.
inline llvm::IntrusiveRefCntPtr<llvm::vfs::OverlayFileSystem> real_file_system() {
#if CLANG_VERSION_MAJOR >= 22
  return llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::vfs::getRealFileSystem());
#else
  return new llvm::vfs::OverlayFileSystem(llvm::vfs::getRealFileSystem());
#endif
}

} // namespace clang_compat

#endif
