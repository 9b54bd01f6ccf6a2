//! The page that is in the program: what `web/dist` held when it was built, file by file.

use std::path::{Path, PathBuf};

use crate::support::{Raw, RawAnswer, Venue};

fn get(venue: &Venue, path: &str) -> RawAnswer {
    Raw { method: "GET", path, body: b"", key: None }.send(&venue.url())
}

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn the_program_serves_the_page_as_it_was_built() {
    let venue = Venue::start();
    let page = get(&venue, "/");
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist");
    if !dist.join("index.html").exists() {
        eprintln!("the page is not built (make web): only what stands in its place is looked at");
        assert!(page.text.contains("Run <code>make web</code>"), "{}", page.text);
        return;
    }
    assert_eq!(page.text, std::fs::read_to_string(dist.join("index.html")).unwrap());
    let mut found = Vec::new();
    files(&dist, &mut found);
    for file in &found {
        let path = format!("/{}", file.strip_prefix(&dist).unwrap().to_str().unwrap());
        let answer = get(&venue, &path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.text.into_bytes(), std::fs::read(file).unwrap(), "{path}");
        // A name that has the content's hash in it is never asked for again.
        let cached = answer.headers.get("cache-control").unwrap().to_str().unwrap();
        assert_eq!(cached.contains("immutable"), path.starts_with("/assets/"), "{path}: {cached}");
    }
    let assets: Vec<&str> = page.text.split('"').filter(|text| text.starts_with("/assets/")).collect();
    assert!(assets.iter().any(|name| name.ends_with(".js")) && assets.iter().any(|name| name.ends_with(".css")), "{assets:?}");
    for name in assets {
        assert_eq!(get(&venue, name).status, 200, "the page asks for {name}");
    }
    assert_eq!(get(&venue, "/assets/none.js").status, 404);
}
