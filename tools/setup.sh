# What ./run, ./test and .ci/run share: getting the packages, configuring, building. Sourced, never run. It changes to
# the repository's root; each function does nothing, and says nothing, when there is nothing to do.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# These names are the same in Debian 12 and Ubuntu 24.04.
build_packages=(
  g++ cmake ninja-build ccache pkg-config python3
  libfmt-dev libspdlog-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev
  libprotobuf-dev protobuf-compiler libeigen3-dev zlib1g-dev libzstd-dev libgtest-dev libgmock-dev
)

fail() {
  echo "talweg: $*" >&2
  exit 1
}

# need_packages NAME...: installs the missing ones. The network is used only when one is missing.
need_packages() {
  command -v dpkg-query > /dev/null || fail "this is no Debian or Ubuntu; install the like of: $*"
  local installed missing=() name
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2> /dev/null || true)
  for name; do
    grep -qxF "installed $name" <<< "$installed" || missing+=("$name")
  done
  [[ ${#missing[@]} -eq 0 ]] && return
  local sudo=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo > /dev/null || fail "no sudo here; as root run: apt-get install ${missing[*]}"
    sudo=(sudo)
  fi
  echo "talweg: installing ${missing[*]}"
  "${sudo[@]}" apt-get -qq update &&
    "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" \
      > /dev/null || fail "apt-get could not install: ${missing[*]}"
}

# configure PRESET: anew when the folder has moved, or the tools or the presets have changed since.
configure() {
  local folder=build/$1 state
  state="$PWD $(g++ -dumpfullversion) $(cmake --version) $(cksum < CMakePresets.json)"
  [[ -f $folder/build.ninja && $(cat "$folder/configured_for" 2> /dev/null) == "$state" ]] && return
  echo "talweg: configuring $folder"
  mkdir -p "$folder"
  cmake --fresh --preset "$1" > "$folder/configure.log" 2>&1 || fail "$(cat "$folder/configure.log")"
  echo "$state" > "$folder/configured_for"
}

# build PRESET TARGET...: shows what is compiled, and not that there was nothing to do.
build() {
  ninja -C "build/$1" "${@:2}" | sed -u '/^ninja: Entering/d; /Re-checking globbed/d; /^ninja: no work to do/d'
}
