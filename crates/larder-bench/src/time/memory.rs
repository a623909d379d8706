//! How much memory may be used, so that a study neither swaps nor is killed: the smaller of what
//! the system has and what the control group allows, less a reserve for other programs.

use std::fs;

/// Bytes for other programs.
const RESERVE: f64 = 1.5e9;

/// Bytes that may still be used.
pub fn free() -> f64 {
    available().min(allowed()) - RESERVE
}

/// The beginning of a message of [`lack`].
pub const WOULD_TAKE: &str = "would take about ";

/// A message that there is no memory for `bytes`, or `None` if there is.
pub fn lack(bytes: f64) -> Option<String> {
    let free = free();
    let [needed, most] = [bytes, free.max(0.0)].map(|bytes| bytes / 1e9);
    let text = format!("{WOULD_TAKE}{needed:.1} GB of memory, {most:.1} GB may be used");
    (bytes > free).then_some(text)
}

/// Bytes that the system can give without swapping.
fn available() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    number(&text, "MemAvailable:").map_or(0.0, |kib| kib * 1024.0)
}

pub fn of_this_process() -> usize {
    resident(std::process::id()).expect("Linux describes processes in /proc")
}

pub fn resident(process: u32) -> Option<usize> {
    let text = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    number(&text, "VmRSS:").map(|kib| kib as usize * 1024)
}

/// The number behind a name at the beginning of a line.
fn number(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes that the control group may still use. Infinite without a limit.
fn allowed() -> f64 {
    let read = |name: &str| fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let bytes = |name: &str| -> Option<f64> { read(name)?.trim().parse().ok() };
    // The page cache counts as used, but the system takes it back when memory is needed.
    let stat = read("memory.stat").unwrap_or_default();
    let pages = ["inactive_file ", "active_file "].map(|name| number(&stat, name).unwrap_or(0.0));
    match (bytes("memory.max"), bytes("memory.current")) {
        (Some(most), Some(now)) => most - now + pages[0] + pages[1],
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_system_are_read() {
        let text = "MemTotal:       24 kB\nMemAvailable:   16 kB\n";
        assert_eq!(number(text, "MemAvailable:"), Some(16.0));
        assert_eq!(number(text, "SwapFree:"), None);
        assert!(available() > 0.0);
    }
}
