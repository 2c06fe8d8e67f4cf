#!/bin/sh
# Prints the commits since the last tag of a repository (default: the current folder), newest first.
set -eu
cd "${1:-.}"
if last=$(git describe --tags --abbrev=0 2>/dev/null); then
    git log --no-merges --format='%h %s' "$last..HEAD"
else
    git log --no-merges --format='%h %s'
fi
