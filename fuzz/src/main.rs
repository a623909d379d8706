//! libFuzzer's entry: `LARDER_FUZZ_TARGET` names the target.
#![no_main]
#![allow(missing_docs)]

use std::sync::LazyLock;

static TARGET: LazyLock<&'static larder_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("LARDER_FUZZ_TARGET").unwrap_or_default();
    larder_fuzz::target(&name).unwrap_or_else(|| {
        let names: Vec<_> = larder_fuzz::TARGETS
            .iter()
            .map(|target| target.name)
            .collect();
        panic!("LARDER_FUZZ_TARGET is none of {names:?}")
    })
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.run)(data));
