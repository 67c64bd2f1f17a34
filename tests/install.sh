#!/bin/sh
# Installs a build into an empty folder and uses it from there as a stranger would: sh tests/install.sh BUILD_FOLDER
set -eu
build=$(cd "${1:-build}" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT INT TERM
prefix=$scratch/prefix
good=0

# step NAME COMMAND...: prints the name, stops the script when the command fails.
step() {
  echo "== $1"
  shift
  "$@"
  good=$((good + 1))
}

version_is_the_same() {
  [ "$("$prefix/bin/redc" --version | sed -n '1s/^redc \([0-9.]*\).*/\1/p')" = "$(pkg-config --modversion red)" ]
}

pkg_config_finds_redc() {
  "$(pkg-config --variable=redc red)" --version
}

example_compiles() {
  "$prefix/bin/redc" "$prefix"/share/doc/red/examples/01-rowsum.red -D m=11 --emit=ptx -o - | grep -q '\.visible \.entry'
}

# The host program of README.md, with the flags that pkg-config gives.
readme_example_runs() {
  awk '/^```c$/ { on = 1; next } /^```/ { on = 0 } on' "$source/README.md" >"$scratch/rowsum.c"
  # shellcheck disable=SC2046
  ${CC:-cc} "$scratch/rowsum.c" $(pkg-config --cflags --libs red) -o "$scratch/rowsum"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir red) RED_DEVICE=sim RED_CACHE_DIR="$scratch/cache" "$scratch/rowsum" >"$scratch/rowsum.out"
  printf '55\n66\n77\n88\n' | cmp - "$scratch/rowsum.out"
}

# Only red_ symbols.
exports_are_red() {
  ! nm -D --defined-only "$prefix"/lib*/libred.so "$prefix"/lib*/*/libred.so 2>/dev/null | awk 'NF == 3 && $3 !~ /^red_/' | grep .
}

find_package_works() {
  mkdir "$scratch/project"
  cat >"$scratch/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(stranger C)
find_package(red 0.1 REQUIRED)
add_custom_command(OUTPUT rowsum.ptx
  COMMAND red::redc ${KERNEL} -D m=11 -o rowsum.ptx DEPENDS ${KERNEL} VERBATIM)
add_custom_target(kernels ALL DEPENDS rowsum.ptx)
END
  cmake -S "$scratch/project" -B "$scratch/project/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
    -DKERNEL="$prefix/share/doc/red/examples/01-rowsum.red"
  cmake --build "$scratch/project/build"
  grep -q '\.visible \.entry' "$scratch/project/build/rowsum.ptx"
}

# A kernel compiled ahead of time, by CMake, in a program without a compiler; a change of the kernel makes it anew.
add_kernel_works() {
  mkdir "$scratch/ahead"
  cp "$prefix/share/doc/red/examples/01-rowsum.red" "$prefix/share/doc/red/examples/16-ahead-of-time.c" "$scratch/ahead"
  cat >"$scratch/ahead/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(ahead C)
find_package(red 0.1 REQUIRED)
red_add_kernel("made by redc/rowsum.h" 01-rowsum.red DEFINES m=11)
foreach(kind red-rt red-rt-static)
  add_executable(${kind} 16-ahead-of-time.c "made by redc/rowsum.h")
  target_include_directories(${kind} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/made by redc")
  target_link_libraries(${kind} PRIVATE red::${kind})
endforeach()
END
  cmake -S "$scratch/ahead" -B "$scratch/ahead/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_FLAGS='-Wall -Wextra -pedantic -Werror'
  cmake --build "$scratch/ahead/build"
  for kind in red-rt red-rt-static; do RED_DEVICE=sim "$scratch/ahead/build/$kind"; done
  if ldd "$scratch/ahead/build/red-rt" | grep -q 'LLVM\|libred\.so'; then return 1; fi
  sed -i 's/^kernel/\n\nkernel/' "$scratch/ahead/01-rowsum.red"
  cmake --build "$scratch/ahead/build" | grep 'redc'
  cmake --build "$scratch/ahead/build" | grep 'no work to do'
  command -v make >/dev/null || return 0 # makes no folders for outputs
  cmake -S "$scratch/ahead" -B "$scratch/ahead/make" -G 'Unix Makefiles' -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$scratch/ahead/make"
}

python_finds_the_library() {
  RED_CACHE=off PYTHONPATH=$prefix/share/red/python python3 -c 'import red; print(red.open("sim"), red.version())'
}

step "install" cmake --install "$build" --prefix "$prefix"
PKG_CONFIG_PATH=$(find "$prefix" -name pkgconfig -type d)
export PKG_CONFIG_PATH
step "redc and pkg-config name the same version" version_is_the_same
step "pkg-config finds redc" pkg_config_finds_redc
step "the installed example compiles" example_compiles
step "find_package(red)" find_package_works
if [ -f "$prefix/include/red.h" ]; then
  step "README's host program" readme_example_runs
  step "exported symbols" exports_are_red
  step "red_add_kernel" add_kernel_works
  step "red from Python" python_finds_the_library
fi
step "licence" test -s "$prefix/share/doc/red/LICENSE"
step "manual" test -s "$prefix/share/man/man1/redc.1"
step "manual of the language" test -s "$prefix/share/man/man7/red-lang.7"
echo "$good passed, 0 failed"
