//! Measures Larder's structures and other maps, from Rust: `larder-bench --help`.

#![deny(unsafe_code)]

#[global_allocator]
static ALLOCATOR: larder_bench::Counting = larder_bench::Counting;

fn main() -> std::process::ExitCode {
    larder_bench::main()
}
