//! The page in a real browser, headless Chromium (Debian's package; `make test` installs it): every
//! plot is drawn by the script, the keyboard works, no script fails. `LARDER_NO_BROWSER=1` leaves
//! these tests out where no browser can be had; `LARDER_SCREENSHOTS=FOLDER` keeps what was seen.

use super::made_up;
use crate::installed;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Debian's name first.
const NAMES: &str = "chromium chromium-browser google-chrome google-chrome-stable";

fn browser() -> Option<PathBuf> {
    if std::env::var_os("LARDER_NO_BROWSER").is_some_and(|set| set != "0") {
        eprintln!("LARDER_NO_BROWSER is set: the report is not looked at in a browser");
        return None;
    }
    Some(installed(NAMES).expect(
        "no Chromium here: `make test` installs Debian's package chromium (apt-get install chromium); where it can't be had, LARDER_NO_BROWSER=1 leaves this test out",
    ))
}

const FLAGS: &str = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage
    --hide-scrollbars --no-first-run --disable-extensions --disable-background-networking
    --disable-component-update --disable-sync --enable-logging=stderr --force-color-profile=srgb
    --virtual-time-budget=3000 --timeout=30000 --dump-dom";

/// What the browser made of a page.
struct Seen {
    dom: String,
    log: String,
}

/// Loads the page, runs its scripts, and takes a picture.
fn look(browser: &Path, page: &Path, picture: &Path, more: &[&str]) -> Seen {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let profile = folder.path();
    let (dom, log) = (profile.join("dom.html"), profile.join("log.txt"));
    let mut child = Command::new(browser)
        .args(FLAGS.split_whitespace())
        .args(more)
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&dom).expect("a file"))
        .stderr(std::fs::File::create(&log).expect("a file"))
        .spawn()
        .expect("the browser starts");
    let begin = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if begin.elapsed() > Duration::from_secs(90) {
            child.kill().expect("it is our child");
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            panic!("the browser did not end: {said}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let read = |path| std::fs::read(path).expect("it was written");
    let [dom, log] = [dom, log].map(|path| String::from_utf8_lossy(&read(path)).into_owned());
    Seen { dom, log }
}

fn pictures() -> PathBuf {
    let folder = std::env::var_os("LARDER_SCREENSHOTS");
    let folder = folder.map_or_else(|| made_up::folder("pictures"), PathBuf::from);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// Width and height of a PNG, from its header.
fn size(picture: &Path) -> (u32, u32) {
    let bytes = std::fs::read(picture).expect("a picture was taken");
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    (number(16), number(20))
}

/// The value of an attribute in the element that begins with `start`.
fn attribute<'a>(dom: &'a str, start: &str, name: &str) -> Option<&'a str> {
    let element = &dom[dom.find(start)?..];
    let element = &element[..element.find('>')?];
    let value = &element[element.find(&format!("{name}=\""))? + name.len() + 2..];
    value.split('"').next()
}

#[test]
fn every_plot_is_drawn_and_the_keyboard_works() {
    let Some(browser) = browser() else { return };
    let (folder, other) = (made_up::folder("browser"), made_up::folder("browser-other"));
    made_up::write_all(&folder, 1.0);
    made_up::write_all(&other, 1.6);
    let out = folder.join("report.html");
    larder_bench::report::write(&folder, Some(&other), &out).expect("a report");
    // The reader's hands: a script after all others.
    let page = std::fs::read_to_string(&out).expect("a page");
    let hands = include_str!("hands.js");
    let driven = folder.join("driven.html");
    let page = page.replace("</body>", &format!("<script>{hands}</script></body>"));
    std::fs::write(&driven, page).expect("written");
    let picture = pictures().join("driven.png");
    let seen = look(&browser, &driven, &picture, &["--window-size=1200,1500"]);
    let state = |name| attribute(&seen.dom, "<html", name);
    assert_eq!(state("data-error"), None, "a script failed");
    let log = &seen.log;
    assert!(!log.contains("CONSOLE"), "the console says: {log}");
    let taken_over = state("data-ready");
    assert_eq!(taken_over, Some("7"), "plots that the script draws");
    assert_eq!(state("data-hands"), Some("all done"));
    for (plot, marks) in [
        ("ets-2003-random-lookup", 7 * 6 + 3),
        ("ets-2003-growth", 700),
        ("ets-2013-lookups", 15),
        ("make-bench-ns-65536", 6),
        ("make-bench-bytes-65536", 2),
    ] {
        let drawn = attribute(&seen.dom, &format!("<figure id=\"{plot}\""), "data-drawn");
        assert_eq!(drawn, Some(marks.to_string().as_str()), "{plot}");
    }
    assert_eq!(size(&picture), (1200, 1500));
}

#[test]
fn it_looks_right_in_the_dark_and_on_paper() {
    let Some(browser) = browser() else { return };
    let folder = made_up::folder("browser-dark");
    made_up::write_all(&folder, 1.0);
    let out = folder.join("dark.html");
    larder_bench::report::write(&folder, None, &out).expect("a report");
    let picture = pictures().join("dark.png");
    let dark = "--blink-settings=preferredColorScheme=0";
    let seen = look(&browser, &out, &picture, &["--window-size=1200,1500", dark]);
    assert_eq!(attribute(&seen.dom, "<html", "data-error"), None);
    assert_eq!(size(&picture), (1200, 1500));
}
