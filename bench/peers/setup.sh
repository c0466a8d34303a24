#!/bin/sh
# Installs the peers that `talweg bench clicks --peers` measures beside ours into build/peers: scikit-learn and Vowpal
# Wabbit, in an environment of their own. Run it once, from anywhere.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
python3 -m venv "$root/build/peers"
"$root/build/peers/bin/pip" install --quiet scikit-learn vowpalwabbit
"$root/build/peers/bin/pip" list 2>/dev/null | grep -iE "^(scikit-learn|vowpalwabbit) "
