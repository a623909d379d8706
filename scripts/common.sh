# Small helpers for the scripts of this folder; sourced, not run.

# Messages go to stderr: some callers (`make -s ebin`) promise a clean stdout.
say() { printf '%s\n' "$*" >&2; }
die() { say "larder: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
