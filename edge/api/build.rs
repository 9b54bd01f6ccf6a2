//! Puts the web page, where it was built, and the commit into the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join("web/dist");
    // A folder that is missing makes cargo run this again at every build, until the page is there.
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    collect(&page, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let name = file.strip_prefix(&page).expect("it was found there").to_string_lossy().replace('\\', "/");
        let path = file.canonicalize().expect("it was found there");
        writeln!(list, "    ({name:?}, include_bytes!({:?})),", path.display().to_string()).expect("a string takes everything");
    }
    list.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let target = out.join("page.rs");
    // Written only when it changed, so that nothing is compiled again for nothing.
    if std::fs::read_to_string(&target).ok().as_deref() != Some(&list) {
        std::fs::write(target, list).expect("the build's folder can be written");
    }

    println!("cargo::rerun-if-env-changed=WALRAS_COMMIT");
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(&root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    if let Some(moves) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={}", root.join(moves).display());
    }
    let commit = std::env::var("WALRAS_COMMIT").ok().or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!("cargo::rustc-env=WALRAS_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
