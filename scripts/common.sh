# Small helpers for the scripts of this folder; sourced, not run.

# Messages go to stderr: some callers (`make -s ebin`) promise a clean stdout.
say() { printf '%s\n' "$*" >&2; }
die() { say "larder: $*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
# The folder of Mnesia's sources, or nothing.
mnesia_sources() {
  local folder
  for folder in "$(erl -noinput -boot start_clean -eval 'io:put_chars(code:lib_dir()), halt().')"/mnesia-*/src; do
    [ ! -s "$folder/mnesia.erl" ] || printf '%s' "$folder"
  done
}
