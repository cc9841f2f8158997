#!/bin/sh
# SPDX-License-Identifier: MIT
# Whether the page of the interactive flame graph is right, on invented profiles, without the
# C writer: page_fixture.mjs makes them, page_check.mjs opens them in a headless browser.
# usage: check_pages.sh NPM    the folder where playwright-core is installed
# Exit 0, 1 after saying what failed, 77 after saying what is missing.
set -eu

npm=${1:?usage: check_pages.sh NPM}
here=$(cd "$(dirname "$0")" && pwd)
chromium=${PYSAMPLE_CHROMIUM:-/usr/bin/chromium}
for needed in "$(command -v node || echo node)" "$chromium" "$npm/node_modules/playwright-core/package.json"; do
	if [ ! -e "$needed" ]; then
		echo "skipped: $needed is not there"
		exit 77
	fi
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 "$here/../../output/assets/bundle.py" --parts "$folder/blob" "$folder/loader"
failed=0
for kind in nasty demo diff deep; do
	node "$here/page_fixture.mjs" $kind "$folder/$kind.html" "$folder/blob" "$folder/loader"
	answer=
	[ ! -e "$folder/$kind.json" ] || answer=$folder/$kind.json
	node "$here/page_check.mjs" "$npm" "$folder/$kind.html" ${answer:+"$answer"} || failed=1
done
exit $failed
