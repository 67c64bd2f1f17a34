#!/bin/sh
# Builds and tests everything that needs no GPU: sh tests/all.sh [PART...]
# Installs missing Debian packages when run as root. A part that cannot run here says so in a line that starts with "skip".
# Output of the parts: build/test-logs/. The last line is "N passed, N failed, N skipped"; the exit status says the same.
set -u
cd "$(dirname "$0")/.." || exit 1
root=$PWD
. cmake/packages.sh

all_parts="packages build units runner golden examples quickstart install asan asan-units asan-golden tsan llvm22 llvm22-units
llvm22-golden sweep sweep-redux sweep-bits mutants proofs differential automatic schedules lift-fuzz fuzz"
parts=${*:-$all_parts}
logs=$root/build/test-logs
jobs=$(nproc 2>/dev/null || echo 2)
fuzz_seconds=${RED_FUZZ_SECONDS:-10}
passed=0
failed=0
skipped=0
no_llvm22=

if command -v ccache >/dev/null 2>&1; then
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
export LC_ALL=C
mkdir -p "$logs"

# part NAME COMMAND...: runs the command with its output in a log and prints one line. The command's counts are the last line
# "N passed, N failed[, N skipped]" of the log; without one, it counts as one test. Status 77 is a skip, its reason the last
# line of the log.
part() {
  name=$1
  shift
  wanted=
  for one in $parts; do
    [ "$one" = "$name" ] && wanted=yes
  done
  [ -n "$wanted" ] || return 0
  log=$logs/$name.log
  start=$(date +%s%3N)
  ("$@") >"$log" 2>&1 </dev/null
  status=$?
  spent=$(($(date +%s%3N) - start))
  spent=$((spent / 1000)).$((spent / 100 % 10))
  counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed\(, \([0-9]*\) skipped\)\{0,1\}$/\1 \2 \4/p' "$log" | tail -n 1)
  p=0 f=0 s=0
  if [ -n "$counts" ] && [ $status != 77 ]; then
    # Word splitting is meant.
    # shellcheck disable=SC2086
    set -- $counts
    p=$1 f=$2 s=${3:-0}
    [ $status = 0 ] || [ "$f" != 0 ] || f=1
  elif [ $status = 0 ]; then
    p=1
  elif [ $status = 77 ]; then
    s=1
  else
    f=1
  fi
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  word=ok
  [ $s != 0 ] && [ $p = 0 ] && word=skip
  [ $f != 0 ] && word=FAILED
  printf '%-7s %-14s %5d passed, %d failed, %d skipped  %s s\n' "$word" "$name" "$p" "$f" "$s" "$spent"
  if [ $f != 0 ]; then
    tail -n 60 "$log" | sed 's/^/        /'
  elif [ $s != 0 ]; then
    if grep -i '^skip' "$log"; then :; else tail -n 1 "$log"; fi | sort -u | sed 's/^/        /'
  fi
}

packages() {
  red_install $RED_BUILD_PACKAGES $RED_TEST_PACKAGES
}

# configure_and_build PRESET [TARGET]
configure_and_build() {
  cmake --preset "$1" -DRED_WERROR=ON -DBUILD_TESTING=ON && cmake --build --preset "$1" -j "$jobs" --target "${2:-all}"
}

# units PRESET: every ctest but the golden files; counts the tests inside each program that says how many. Builds other than the
# release leave out what takes minutes: many whole runs of redc, which the release has seen.
units() {
  slow='^(run/(cases|permutes)|lift|inspect_.*|passes|mutation|proofs|sweep_compile|docs|format|messages)$'
  [ "$1" != release ] || slow='^$'
  [ "$1" != llvm22 ] || slow="$slow|^run/classes\$"
  folder=$root/build
  [ "$1" = release ] || folder=$root/build/$1
  log=$logs/ctest-$1.txt
  ASAN_OPTIONS="malloc_context_size=2${ASAN_OPTIONS:+:$ASAN_OPTIONS}" LSAN_OPTIONS="suppressions=$root/tests/fake/lsan.supp:print_suppressions=0" \
    ctest --test-dir "$folder" -LE golden -E "$slow" --no-tests=error -j "$jobs" --verbose >"$log" 2>&1
  status=$?
  grep -E '^ *[0-9]+/[0-9]+ Test|^[0-9]+: |^No tests' "$log" |
    grep -vE '^[0-9]+: ( |$|Test command|Working Directory|Test timeout|Environment)| Passed |was not found| 0 failed$' |
    grep -vE 'Passing: [0-9]+ \| Failing: 0 '
  awk '
    /^[0-9]+: ./ { last[$1 + 0] = $0 }
    / was not found/ { sub(/^[0-9]+: */, ""); if (!absent[$0]++) { s++; print "skipped: " $0 } }
    / Synthesis: / {
      n = $1 + 0
      for (i = 1; i < NF; i++) {
        if ($i == "Passing:") pass[n] += $(i + 1)
        if ($i == "Failing:") fail[n] += $(i + 1)
      }
    }
    /^[0-9]+: [0-9]+ passed, [0-9]+ failed/ { pass[$1 + 0] += $2; fail[$1 + 0] += $4 }
    / Test +#[0-9]+: / {
      n = $0; sub(/.*#/, "", n); n += 0
      if ($0 ~ /\*\*\*Skipped/) { s++; sub(/^[0-9]+: /, "", last[n]); print "skipped: " last[n] }
      else if ($0 ~ / Passed /) { if (n in pass) p += pass[n]; else p++; f += fail[n] }
      else { p += pass[n]; f += fail[n] ? fail[n] : 1 }
    }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$log"
  return $status
}

golden() {
  python3 tests/golden/run.py -j "$jobs" "$@"
}

quickstart() {
  out=$(sh examples/quickstart.sh) || return 1
  echo "$out"
  case $out in
  *__global__*.visible\ .entry*11055*) ;;
  *) echo "the quickstart shows no kernel or no sum"; return 1 ;;
  esac
}

llvm22() {
  if ! red_has_package llvm-22-dev; then
    if [ "$(id -u)" != 0 ] || ! red_can_install llvm-22-dev || ! red_install llvm-22-dev; then
      echo "skipped: llvm-22-dev is not to be had here"
      return 77
    fi
  fi
  # Clang is optional in every build.
  if [ "$(id -u)" = 0 ] && red_can_install libclang-22-dev && red_can_install libclang-cpp22-dev; then
    red_install libclang-22-dev libclang-cpp22-dev
  fi
  configure_and_build llvm22
}

# Runs the rest of its arguments where the LLVM 22 build is there.
with_llvm22() {
  if [ ! -x build/llvm22/redc ]; then
    echo "skipped: no build with LLVM 22"
    return 77
  fi
  "$@"
}

# seeds PROGRAM FOLDER: fills the folder with what the fuzzer starts from.
seeds() {
  for source in "tests/fuzz/corpus/$1" "tests/fuzz/${1#fuzz_}"; do
    [ ! -d "$source" ] || cp -r "$source/." "$2"
  done
  for example in examples/*.red; do
    stem=$(basename "$example" .red)
    case $1 in
    fuzz_red | fuzz_compile) cp "$example" "$2" ;;
    fuzz_ir) build/fuzz/redc "$example" -D m=11 --emit=ir -o "$2/$stem" 2>/dev/null ;;
    fuzz_ptx) build/fuzz/redc "$example" -D m=11 --emit=ptx -o "$2/$stem" 2>/dev/null ;;
    esac
  done
}

fuzz() {
  configure_and_build fuzz fuzzers || return 1
  good=0 bad=0
  for program in build/fuzz/tests/fuzz/fuzz_*; do
    [ -x "$program" ] && [ -f "$program" ] || continue
    base=$(basename "$program")
    corpus=$root/build/fuzz/corpus/$base
    mkdir -p "$corpus"
    seeds "$base" "$corpus"
    dictionary=
    case $base in
    fuzz_red | fuzz_compile) dictionary=-dict=tests/fuzz/red.dict ;;
    esac
    out=$root/build/fuzz/$base.txt
    if "$program" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 $dictionary \
      -artifact_prefix="$root/build/fuzz/$base-" "$corpus" >"$out" 2>&1; then
      echo "$base: $(grep '^Done' "$out")"
      good=$((good + 1))
    else
      bad=$((bad + 1))
      grep -vE '^#|^INFO' "$out" | tail -n 40
      echo "FAILED: $base; its input is in build/fuzz/$base-*"
    fi
  done
  echo "$good passed, $bad failed"
  [ $bad = 0 ] && [ $good != 0 ]
}

# Programs of many threads, under ThreadSanitizer.
threads_under_tsan() {
  cmake --preset tsan && cmake --build --preset tsan --target threads_threads && ctest --test-dir build/tsan -R '^threads/' --output-on-failure
}

part packages packages
part build configure_and_build release
part units units release
part runner python3 tests/golden/selftest.py
part golden golden
part examples python3 tests/examples.py -j "$jobs"
part quickstart quickstart
part install sh tests/install.sh build
part asan configure_and_build asan
part asan-units units asan
part asan-golden golden --redc build/asan/redc
part tsan threads_under_tsan
part llvm22 llvm22
part llvm22-units with_llvm22 units llvm22
part llvm22-golden with_llvm22 golden --redc build/llvm22/redc --llvm 22
part sweep python3 tests/sweep.py --redc build/redc --jobs "$jobs"
part sweep-redux python3 tests/sweep.py --redc build/redc --jobs "$jobs" --seed 2 --option=--arch=sm_90
part sweep-bits python3 tests/sweep.py --redc build/redc --jobs "$jobs" --bits 100
part mutants python3 tests/mutation.py --redc build/redc --jobs "$jobs"
part proofs python3 tests/proofs.py --redc build/redc --jobs "$jobs"
part differential python3 tests/fuzz/differential.py --redc build/redc --jobs "$jobs"
part lift-fuzz python3 tests/fuzz/lift.py --redc build/redc --count 80
part automatic python3 tests/fuzz/automatic.py --redc build/redc --jobs "$jobs"
part schedules python3 tests/schedules.py --redc build/redc --jobs "$jobs"
part fuzz fuzz

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
