# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Sourced by the scripts of this folder, in the root of the project: the packages
# they need, and how pysample is built.

# shellcheck disable=SC2034 # used by those who source this
build_packages='gcc libc6-dev libelf-dev zlib1g-dev libprotobuf-c-dev protobuf-c-compiler
	meson ninja-build pkg-config libzstd-dev python3'
# shellcheck disable=SC2034
test_packages='libcriterion-dev clang-format clang-tidy cppcheck shellcheck util-linux
	python3.11-dbg libpython3-dev libexpat1-dev binutils strace'

# The distribution's, whatever else comes first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# need PACKAGE...: install what is missing, or say what to install.
need() {
	command -v dpkg-query >/dev/null || return 0 # not Debian: building will tell
	missing=
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}\n' "$package" 2>/dev/null | grep -q '^.i' ||
			missing="$missing $package"
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "$0: these packages are missing; as root: apt-get install$missing" >&2
		exit 1
	fi
	echo "$0: installing$missing" >&2
	apt-get update -qq
	# shellcheck disable=SC2086 # one word a package
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing \
		>/dev/null
}

# configure_and_build FOLDER OPTION...
configure_and_build() {
	folder=$1
	shift
	if [ -e "$folder/build.ninja" ]; then
		meson setup --reconfigure "$folder" "$@" && meson compile -C "$folder"
	else
		meson setup "$folder" "$@" && meson compile -C "$folder"
	fi
}
