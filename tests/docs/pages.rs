//! Each lock system has its page, and all pages answer the same questions.

use doublebook::lock::LockName;

use crate::{read, top};

const HEADINGS: [&str; 7] = [
    "## How it is taken",
    "## How it is kept",
    "## How it is released",
    "## How it is lost",
    "## What it cannot promise",
    "## How the textbook does it, and what that gets wrong",
    "## How to run it",
];

fn page(name: LockName) -> String {
    format!("docs/locks/{name}.md")
}

#[test]
fn the_pages_of_the_lock_systems_have_the_same_headings() {
    for name in LockName::ALL {
        let text = read(&page(name));
        let found: Vec<_> = text.lines().filter(|line| line.starts_with('#')).collect();
        let mut expected = vec![format!("# {name}")];
        expected.extend(HEADINGS.map(str::to_owned));
        assert_eq!(found, expected, "{}", page(name));
    }
}

#[test]
fn every_lock_system_has_its_page_and_the_index_leads_there() {
    let index = read("docs/locks/README.md");
    let missing: Vec<_> = LockName::ALL
        .into_iter()
        .filter(|&name| {
            !top().join(page(name)).exists() || !index.contains(&format!("[`{name}`]({name}.md)"))
        })
        .map(page)
        .collect();
    assert!(
        missing.is_empty(),
        "missing, or not in the index: {missing:?}"
    );
}
