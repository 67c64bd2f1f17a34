#!/bin/sh
# From a fresh clone to a compiled kernel: sh examples/quickstart.sh
# Installs missing Debian packages (as root), builds build/redc, shows one kernel as CUDA and as PTX, and runs it.
set -eu
cd "$(dirname "$0")/.."
. cmake/packages.sh

red_install $RED_BUILD_PACKAGES
if [ ! -f build/CMakeCache.txt ]; then
  cmake --preset release >&2
fi
cmake --build build --target redc >&2

for emit in cuda ptx; do
  echo
  echo "\$ build/redc examples/01-rowsum.red -D m=11 --emit=$emit -o -"
  build/redc examples/01-rowsum.red -D m=11 --emit=$emit -o -
done

# From a file of NumPy's format, on the GPU where there is one, otherwise in the simulator, and compared with the reference
# interpreter: a difference or a fault ends the script.
show() {
  echo
  echo "\$ $1"
  eval "$1"
}
show "build/redc run examples/01-rowsum.red -D m=11 -D n=4 --device=ref --arg 'A=1000*i0 + i1' --out A=build/rows.npy"
show "build/redc run examples/01-rowsum.red -D m=11 --arg A=build/rows.npy --check --print B"
