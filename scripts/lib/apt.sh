# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Sourced by scripts that unpack packages of another release or architecture of Debian.

mirror=${PYSAMPLE_MIRROR:-http://deb.debian.org/debian}

# private_apt FOLDER ARCHITECTURE SOURCE...: make an apt of its own in FOLDER, with these lines of
# sources.list ("deb SUITE", "deb-src SUITE"), and have what is called from now on use it. It knows
# of no installed package, so it resolves all dependencies; it needs no root and changes nothing else.
private_apt() {
	apt=$1
	mkdir -p "$apt/lists/partial" "$apt/archives/partial"
	: >"$apt/status"
	cat >"$apt/apt.conf" <<-CONF
		APT::Architecture "$2";
		APT::Architectures { "$2"; };
		APT::Install-Recommends "false";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
		Acquire::Check-Valid-Until "false";
		Acquire::Languages "none";
		Dir::State "$apt";
		Dir::State::status "$apt/status";
		Dir::Cache "$apt";
		Dir::Log "$apt";
		Dir::Etc "$apt";
		Dir::Etc::sourcelist "$apt/sources.list";
		Dir::Etc::sourceparts "/dev/null";
		Dir::Etc::preferencesparts "/dev/null";
		Dir::Etc::parts "/dev/null";
	CONF
	shift 2
	for source in "$@"; do
		echo "${source% *} [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
			"$mirror ${source#* } main"
	done >"$apt/sources.list"
	export APT_CONFIG="$apt/apt.conf"
}
