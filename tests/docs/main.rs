//! What the documents say is what the program does: tables, links, and the commands of the README.

mod bugs;
mod commands;
mod containers;
mod links;
mod pages;
mod tables;

use std::path::{Path, PathBuf};

/// The top of the checkout.
pub fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text of a document.
pub fn read(name: &str) -> String {
    std::fs::read_to_string(top().join(name)).expect("the document is there")
}

/// All Markdown files that people read.
pub fn documents() -> Vec<PathBuf> {
    let folders = [
        top().to_owned(),
        top().join("docs"),
        top().join("docs/decisions"),
        top().join("docs/locks"),
    ];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).expect("the folder is there"));
    let paths = files.map(|entry| entry.expect("a file").path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect()
}
