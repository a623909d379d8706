//! Writes the seeds of every target to folders of their names, for the fuzzer to begin with:
//! `seeds FOLDER`.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(
        std::env::args()
            .nth(1)
            .unwrap_or_else(|| "_build/fuzz".into()),
    );
    for target in larder_fuzz::TARGETS {
        let folder = folder.join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (n, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{n}")), seed)?;
        }
    }
    Ok(())
}
