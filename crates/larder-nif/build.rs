//! How the library is linked: the functions of the BEAM are found when it is loaded, and it is
//! never unloaded, because the engine's background thread runs its code.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    match std::env::var("CARGO_CFG_TARGET_OS").as_deref() {
        Ok("macos") => println!("cargo:rustc-cdylib-link-arg=-Wl,-undefined,dynamic_lookup"),
        Ok("linux" | "freebsd" | "netbsd" | "openbsd") => {
            println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete")
        }
        _ => {}
    }
}
