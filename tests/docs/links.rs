//! Every link between documents leads somewhere.

use crate::documents;

#[test]
fn links_between_documents_lead_somewhere() {
    let mut dead = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let path = target.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            if !document.with_file_name(path).exists() {
                dead.push(format!("{}: {target}", document.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn source_files_that_documents_name_are_there() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for name in text
            .split('`')
            .filter(|part| part.starts_with("src/") || part.starts_with("docs/"))
        {
            if !crate::top().join(name).exists() {
                missing.push(format!("{}: {name}", document.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}
