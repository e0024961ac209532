#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh types | unit | browser MAKE_PAGE: one of the viewer's tests; fetches its packages if need be.
set -eu
tests=$(cd "$(dirname "$0")" && pwd)
web=$tests/../../web
"$web/build.sh"
case $1 in
types) exec node "$web/node_modules/typescript/bin/tsc" --noEmit -p "$web" ;;
unit) exec node "$web/test.mjs" ;;
browser) exec node "$tests/viewer_test.mjs" "$2" ;;
esac
