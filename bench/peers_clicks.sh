#!/bin/sh
# One pass of Vowpal Wabbit over the rows that `talweg bench clicks` trains on, in turn with Talweg, on this machine.
# Installs nothing: says what is missing and ends with status 3.
#
#   bench/peers_clicks.sh [path to talweg] [rounds]
set -eu
talweg=${1:-build/release/bin/talweg}
rounds=${2:-5}

if ! command -v "$talweg" > /dev/null; then
  echo "peers_clicks: no $talweg; build it, or name it as the first argument" >&2
  exit 3
fi
if ! command -v vw > /dev/null; then
  echo "peers_clicks: no vw (Vowpal Wabbit) in the path; nothing to compare with" >&2
  exit 3
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
"$talweg" generate clicks --out "$folder/train.svm" --rows 800000
"$talweg" generate clicks --out "$folder/test.svm" --rows 100000 --first-row 800000

# VW's own text: labels -1 and 1, one namespace, keys as they are (numbers below 2^bits are not hashed).
to_vw() { awk '{ $1 = ($1 > 0 ? "1" : "-1") " |"; gsub(/:1( |$)/, " "); print }' "$1" > "$2"; }
to_vw "$folder/train.svm" "$folder/train.vw"
to_vw "$folder/test.svm" "$folder/test.vw"

cat > "$folder/job.yaml" << JOB
name: peers
model: {type: logistic, features: 1048576}
data: {train: $folder/train.svm, test: $folder/test.svm}
train: {epochs: 1, batch: 4096, optimizer: {type: adagrad, lr: 0.03}}
distribute: {topology: store, sync: bsp, workers: 2, servers: 1}
runs: $folder/runs
JOB

vw_flags="--loss_function logistic -b 20 --quiet"
seconds() {
  begun=$(date +%s.%N)
  "$@" > /dev/null
  echo "$(date +%s.%N) $begun" | awk '{ printf "%.3f\n", $1 - $2 }'
}

# shellcheck disable=SC2086
vw $vw_flags -d "$folder/train.vw" --cache_file "$folder/vw.cache"
"$talweg" train "$folder/job.yaml" --quiet > /dev/null
round=0
while [ "$round" -lt "$rounds" ]; do
  # shellcheck disable=SC2086
  {
    seconds vw $vw_flags -d "$folder/train.vw" -f "$folder/vw.model" >> "$folder/vw_text"
    seconds vw $vw_flags --cache_file "$folder/vw.cache" >> "$folder/vw_cache"
  }
  seconds "$talweg" train "$folder/job.yaml" --quiet >> "$folder/talweg"
  round=$((round + 1))
done

show() { sort -n "$1" | awk -v name="$2" '{ t[NR] = $1 } END { printf "%-34s %.3f (%.3f .. %.3f)\n", name, t[int(NR / 2) + 1], t[1], t[NR] }'; }
echo "seconds, median (least .. most) of $rounds; each is a whole command, talweg's with its evaluation"
show "$folder/vw_text" "vw, one pass from text"
show "$folder/vw_cache" "vw, one pass from its cache"
show "$folder/talweg" "talweg train, 2 workers, 1 server"

vw --quiet -t -i "$folder/vw.model" -d "$folder/test.vw" -r "$folder/scores"
paste -d ' ' "$folder/scores" "$folder/test.vw" | awk '{ print $1, $2 }' | sort -g | awk '
  { n = ($2 > 0); rank_sum += n * NR; positives += n }
  END { negatives = NR - positives; printf "vw AUC, held out: %.4f\n", (rank_sum - positives * (positives + 1) / 2) / (positives * negatives) }'
"$talweg" train "$folder/job.yaml" --quiet | grep 'epoch 1'
