#!/bin/bash
# The index under a model checker: threads change at every touch of an atomic (crates/larder-index/src/sync). A build of its own.
#
#   scripts/model.sh [ARGUMENTS OF cargo test...]     LARDER_SOAK=n: n times as many executions
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="${RUSTFLAGS:-} --cfg larder_model"
exec cargo test --quiet --locked -p larder-index --test interleavings --target-dir "${CARGO_TARGET_DIR:-$PWD/target}/model" "$@"
