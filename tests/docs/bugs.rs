//! Every kind of bug that is listed is staged by a test, which names its number.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{read, top};

/// The numbers of the rows of the list.
fn listed() -> BTreeSet<u32> {
    let page = read("docs/locks/bugs.md");
    let cells = page.lines().filter_map(|line| line.split('|').nth(1));
    cells.filter_map(|cell| cell.trim().parse().ok()).collect()
}

/// The numbers that tests name in the comments above them.
fn named() -> BTreeSet<u32> {
    let mut texts = Vec::new();
    for group in ["lock_contract", "replicas"] {
        collect(&top().join("tests").join(group), &mut texts);
    }
    texts.iter().flat_map(|text| numbers(text)).collect()
}

fn collect(folder: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, texts);
        } else {
            texts.push(std::fs::read_to_string(path).expect("a text"));
        }
    }
}

/// "Bug 17", "Bugs 3 and 4", "Bugs 3, 15 and 16".
fn numbers(text: &str) -> Vec<u32> {
    let comments = text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("//"));
    let lists = comments.flat_map(|comment| comment.split("Bug").skip(1));
    lists.flat_map(list).collect()
}

/// What a list begins with, up to the first word that is neither a number nor "and".
fn list(text: &str) -> impl Iterator<Item = u32> {
    let words = text.trim_start_matches('s').split_whitespace();
    let words = words.map(|word| word.trim_end_matches([',', '.', ':']));
    let wanted = words.take_while(|word| *word == "and" || word.parse::<u32>().is_ok());
    wanted.filter_map(|word| word.parse().ok())
}

#[test]
fn every_kind_of_bug_is_named_by_a_test() {
    let listed = listed();
    assert_eq!(listed, (1..=50).collect(), "docs/locks/bugs.md has a gap");
    let named = named();
    let missing: Vec<_> = listed.difference(&named).collect();
    assert!(missing.is_empty(), "no test names these bugs: {missing:?}");
    let unknown: Vec<_> = named.difference(&listed).collect();
    assert!(unknown.is_empty(), "not in docs/locks/bugs.md: {unknown:?}");
}

#[test]
fn lists_of_bugs_are_read() {
    let text = "    /// Bugs 3, 15 and 16: the node of 7 waiters.\n// Bug 31, and 41.\nlet bug = \"Bug 8\";\n";
    assert_eq!(numbers(text), [3, 15, 16, 31, 41]);
}
