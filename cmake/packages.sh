# Sourced by the scripts that build red: names the Debian packages needed and installs those that are missing.
# POSIX sh.

RED_BUILD_PACKAGES="cmake ninja-build gcc g++ libc6-dev flex bison llvm-19-dev zlib1g-dev libzstd-dev"
RED_TEST_PACKAGES="python3 pkg-config libcriterion-dev clang libclang-rt-dev libclang-19-dev libclang-cpp19-dev chromium"

# Does dpkg know the package as installed?
red_has_package() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints those of the packages that are not installed.
red_missing_packages() {
  for red_package in "$@"; do
    red_has_package "$red_package" || printf '%s ' "$red_package"
  done
}

# red_install PACKAGE...: installs what is missing. Does nothing, and needs no network, when nothing is.
red_install() {
  if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "red: not a Debian system; needed are the equivalents of: $*" >&2
    return 0
  fi
  red_missing=$(red_missing_packages "$@")
  [ -n "$red_missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    echo "red: packages are missing: $red_missing" >&2
    echo "red: install them as root: apt-get update && apt-get install --no-install-recommends $red_missing" >&2
    return 1
  fi
  echo "red: installing $red_missing" >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >&2 || return 1
  # Word splitting is meant.
  # shellcheck disable=SC2086
  apt-get install -q -y --no-install-recommends $red_missing >&2
}

# Can the package be installed from here? For root, who may ask for the newest lists.
red_can_install() {
  apt-get update -q >&2
  apt-cache policy "$1" 2>/dev/null | grep -q 'Candidate: [0-9]'
}
