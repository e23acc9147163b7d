# SPDX-License-Identifier: MIT
# Sourced by tools/quickstart.sh and test/run.sh: installs what they name and is missing, on Debian and
# its relatives. Says what it does; does nothing when everything is there.

say() {
    printf '== %s\n' "$*"
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null 2>&1; then
        sudo "$@"
    else
        say "cannot run '$*': neither root nor sudo"
        return 1
    fi
}

# need PACKAGE...: those that are not installed are installed. Fails if that does not succeed.
need() {
    missing=""
    for package; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        say "not a Debian system: please install what these packages hold:$missing"
        return 1
    fi
    say "installing:$missing"
    # A list that is too old names packages that are gone: refresh it once and try again.
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >/dev/null 2>&1 && return 0
    as_root apt-get update -qq >/dev/null || return 1
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        $missing >/dev/null
}

# What building the library and its tools takes; dpkg-dev tells meson where Debian has its libraries.
build_packages="gcc libc6-dev dpkg-dev meson ninja-build pkg-config libnanopb-dev libzip-dev zlib1g-dev libjansson-dev
libpng-dev libjpeg-dev libwebp-dev libsndfile1-dev"
