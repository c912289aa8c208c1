#!/bin/sh
# Makes the branch binder-full: what HEAD has, with binder-full/ in the place of binder/. Neither the files here nor the index change.
set -eu

full=$(git rev-parse --verify --quiet 'HEAD:binder-full') || { echo 'there is no committed binder-full/ here' >&2; exit 1; }
index=$(mktemp -d)
trap 'rm -rf "$index"' EXIT
GIT_INDEX_FILE=$index/index
export GIT_INDEX_FILE
git read-tree HEAD
git rm --quiet -r --cached binder
git read-tree --prefix=binder/ "$full"
tree=$(git write-tree)
commit=$(git commit-tree "$tree" -p HEAD -m 'Binder with Spark and Java')
git update-ref refs/heads/binder-full "$commit"
echo "binder-full: $commit"
