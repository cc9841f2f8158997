# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Sourced by the scripts, in the root of the project: the packages that they need, and how pysample
# is built.

# shellcheck disable=SC2034 # used by the scripts that source this
build_packages='gcc libc6-dev libdw-dev libelf-dev libiberty-dev liblz4-dev liblzma-dev libncurses-dev
	libprotobuf-c-dev libzstd-dev libzydis-dev meson ninja-build pkg-config protobuf-c-compiler python3 zlib1g-dev'
# For --engine bpf; without them everything else is built.
# shellcheck disable=SC2034
bpf_packages='bpftool clang libbpf-dev'
# shellcheck disable=SC2034
test_packages='libcriterion-dev clang-format clang-tidy cppcheck elfutils shellcheck util-linux
	python3.11-dbg libpython3-dev libexpat1-dev libunwind-dev binutils strace tmux gunicorn
	python3-pytest uwsgi-core uwsgi-plugin-python3'
# To build for aarch64 and to run that; without them the step is skipped.
# shellcheck disable=SC2034
aarch64_packages='gcc-aarch64-linux-gnu qemu-user-static'
# They boot the guests of scripts/testbed --amd64 and --arm64.
# shellcheck disable=SC2034
guest_packages='cpio qemu-system-arm qemu-system-x86'
# Programs that open the files which pysample writes. Without them tests are skipped.
# shellcheck disable=SC2034
consumer_packages='chromium clang gdb golang-go libdevel-nytprof-perl linux-perf llvm-runtime
	protobuf-compiler python3-jsonschema valgrind zstd'

# For scripts/package: the tools. What is linked in comes from scripts/lib/sysroot.
# shellcheck disable=SC2034
package_packages='bpftool clang debian-archive-keyring gcc git meson ninja-build pkg-config protobuf-c-compiler python3'

# The distribution's python3, whatever comes first in PATH.
python=/usr/bin/python3
[ -x "$python" ] || python=python3

# missing_packages PACKAGE...: print those that are not installed, one a line; nothing except on
# Debian.
missing_packages() {
	command -v dpkg-query >/dev/null || return 0
	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}\n' "$package" 2>/dev/null | grep -q '^.i' ||
			echo "$package"
	done
}

install_packages() {
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# install_required PACKAGE...: as root install what is missing, else print what to install and go
# on: some of it may have been installed in another way.
install_required() {
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086 # one word a package
	set -- $missing
	if [ "$(id -u)" != 0 ]; then
		echo "$0: missing packages; install them as root: apt-get install $*" >&2
		return 0
	fi
	echo "$0: installing $*" >&2
	apt-get update -qq
	install_packages "$@"
}

# install_optional PACKAGE...: install what is missing, as far as possible, and print what is still
# missing.
install_optional() {
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	# shellcheck disable=SC2086 # one word a package
	set -- $missing
	if [ "$(id -u)" = 0 ]; then
		echo "$0: installing $*" >&2
		apt-get update -qq || :
		install_packages "$@" || for package in "$@"; do
			install_packages "$package" || :
		done
	fi
	for package in $(missing_packages "$@"); do
		echo "$0: $package is not installed; tests that need it are skipped" >&2
	done
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
