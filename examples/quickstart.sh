#!/bin/sh
# From a fresh clone to a compiled kernel: sh examples/quickstart.sh
# Installs missing Debian packages (as root), builds build/redc, shows one kernel as CUDA and as PTX, and runs it in
# the simulator.
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

# In the simulator, and compared with the reference interpreter: a difference or a fault ends the script.
echo
echo "\$ build/redc run examples/01-rowsum.red -D m=11 -D n=4 --device=sim --check --arg 'A=1000*i0 + i1' --print B"
build/redc run examples/01-rowsum.red -D m=11 -D n=4 --device=sim --check --arg 'A=1000*i0 + i1' --print B
