//! How much memory may be used, so that a study doesn't swap and isn't killed.
//!
//! It is the smaller of what the system can give without swapping and what the control group
//! allows, less a reserve for other programs.

use std::fs;

/// Bytes that are reserved for other programs.
const RESERVE: f64 = 1.5e9;

/// Bytes that may still be used.
pub fn free() -> f64 {
    available().min(allowed()) - RESERVE
}

/// The beginning of the text of [`lack`].
pub const WOULD_TAKE: &str = "would take about ";

/// A message that there is no memory for `bytes`, or `None` if there is.
pub fn lack(bytes: f64) -> Option<String> {
    let free = free();
    let [needed, most] = [bytes, free.max(0.0)].map(|bytes| bytes / 1e9);
    let text = format!("{WOULD_TAKE}{needed:.1} GB of memory, {most:.1} GB may be used");
    (bytes > free).then_some(text)
}

/// What the system can give without swapping.
fn available() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    kib(&text, "MemAvailable:").map_or(0.0, |kib| kib * 1024.0)
}

/// Resident bytes of this process.
pub fn own() -> usize {
    resident(std::process::id()).expect("Linux describes processes in /proc")
}

/// Resident bytes of a process, from `/proc`.
pub fn resident(process: u32) -> Option<usize> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    kib(&text, "VmRSS:").map(|kib| kib as usize * 1024)
}

fn kib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The bytes that the control group may still use; infinite without a limit. Its page cache counts
/// as used, but is reclaimed when memory is needed.
fn allowed() -> f64 {
    let folder = "/sys/fs/cgroup";
    let number = |name: &str| -> Option<f64> {
        let text = fs::read_to_string(format!("{folder}/{name}")).ok()?;
        text.trim().parse().ok()
    };
    // The page cache of the group counts as used, though the system takes it back when memory is
    // needed.
    let files = || {
        let text = fs::read_to_string(format!("{folder}/memory.stat")).ok()?;
        let pages = |name| kib(&text, name);
        Some(pages("inactive_file ")? + pages("active_file ")?)
    };
    // Without a control group, or without a limit, only the system's memory counts.
    match (number("memory.max"), number("memory.current")) {
        (Some(most), Some(now)) => most - now + files().unwrap_or(0.0),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_understood() {
        let text = "MemTotal:       24 kB\nMemAvailable:   16 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(16.0));
        assert_eq!(kib(text, "SwapFree:"), None);
        assert!(available() > 0.0);
    }
}
