//! The document against itself, the table of problems and `docs/api.md`. Whether replicas do what it says, the tests
//! of two replicas ask.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::document;
use crate::http::kind::Kind;

/// Problems of no operation: those of pages, and of methods that an address does not have.
const ELSEWHERE: [Kind; 3] = [
    Kind::INVALID_FORM,
    Kind::LOAD_UNDER_WAY,
    Kind::METHOD_NOT_ALLOWED,
];

const API: &str = include_str!("../../../docs/api.md");

fn json() -> Value {
    serde_json::to_value(document()).expect("a document")
}

/// Each operation as `GET /path`.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("methods").iter();
        methods.map(move |(method, operation)| {
            (format!("{} {path}", method.to_uppercase()), operation)
        })
    });
    all.collect()
}

/// The bodies of all answers of an operation.
fn answers(operation: &Value) -> impl Iterator<Item = &Value> {
    let answers = operation["responses"]
        .as_object()
        .expect("answers")
        .values();
    answers.flat_map(|answer| {
        answer["content"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, body)| body)
    })
}

/// The body of its requests, null if it takes none.
fn request(operation: &Value) -> &Value {
    &operation["requestBody"]["content"]["application/json"]
}

fn examples(body: &Value) -> Vec<(&String, &Value)> {
    let examples = body["examples"].as_object();
    examples
        .into_iter()
        .flatten()
        .map(|(name, example)| (name, &example["value"]))
        .collect()
}

/// Fails unless a body has examples, and all of them have its form. Requests that are refused for it have not.
fn has_examples_of_its_form(name: &str, body: &Value, document: &Value) {
    // The schema in the document's place, so that its references lead somewhere.
    let mut schema = body["schema"].clone();
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(
        !examples(body).is_empty(),
        "{name}: an example of {}",
        body["schema"]
    );
    for (example, value) in examples(body) {
        let is_refused = example == "invalid-field" && value["type"].is_null();
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| error.to_string())
            .collect();
        assert!(
            is_refused || errors.is_empty(),
            "{name}: {example}: {errors:?}: {value}"
        );
    }
}

#[test]
fn every_example_has_the_form_that_is_described() {
    let document = json();
    for (name, operation) in operations(&document) {
        for body in answers(operation) {
            has_examples_of_its_form(&name, body, &document);
        }
        if operation["requestBody"].is_object() {
            has_examples_of_its_form(&name, request(operation), &document);
        }
    }
}

#[test]
fn a_request_and_its_answer_have_one_name() {
    let document = json();
    for (name, operation) in operations(&document) {
        let told: BTreeSet<_> = answers(operation)
            .flat_map(examples)
            .map(|(example, _)| example)
            .collect();
        for (example, _) in examples(request(operation)) {
            assert!(
                told.contains(example),
                "{name}: what is answered to {example}?"
            );
        }
    }
}

/// Two types of one name would silently become one in the document.
#[test]
fn types_have_names_of_their_own() {
    let mut known = BTreeMap::new();
    for (name, schema) in super::operations()
        .iter()
        .flat_map(|operation| operation.schemas())
    {
        let schema = serde_json::to_value(schema).expect("a schema");
        let before = known.entry(name).or_insert_with(|| schema.clone());
        assert_eq!(*before, schema, "{name}");
    }
}

#[test]
fn every_kind_of_problem_is_described_where_it_can_be_met() {
    let document = json();
    let mut met = BTreeSet::new();
    for (name, operation) in operations(&document) {
        for (status, answer) in operation["responses"].as_object().expect("answers") {
            for (word, problem) in examples(&answer["content"]["application/problem+json"]) {
                let kind = Kind::ALL.iter().find(|kind| kind.word == word);
                let kind = kind.unwrap_or_else(|| panic!("{name}: there is no problem {word}"));
                assert_eq!(problem["type"], format!("/problems/{word}"));
                assert_eq!(kind.status.as_str(), status, "{name}: {word}");
                met.insert(kind.word);
            }
        }
    }
    met.extend(ELSEWHERE.map(|kind| kind.word));
    let all: BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.word).collect();
    assert_eq!(met, all);
}

/// The rows of the tables of `docs/api.md`, cut at their bars.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let rows = API.lines().filter(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect())
}

/// What stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_table_of_addresses_is_the_documents_own() {
    let written: BTreeSet<String> = rows()
        .flat_map(|row| {
            let quoted = quoted(row[0]);
            // "`GET`, `POST /path`" is both at one path.
            let path = quoted
                .iter()
                .rev()
                .find_map(|one| one.split_once(' '))
                .map(|(_, path)| path);
            let methods = quoted
                .into_iter()
                .filter(|one| one.starts_with(|letter: char| letter.is_ascii_uppercase()));
            let full = move |one: &str| {
                if one.contains(' ') {
                    one.to_owned()
                } else {
                    format!("{one} {}", path.unwrap_or(""))
                }
            };
            methods.map(full).collect::<Vec<_>>()
        })
        .filter(|operation| operation.contains(" /"))
        .collect();
    let document = json();
    let described: BTreeSet<String> = operations(&document)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(written, described);
}

#[test]
fn the_table_of_errors_is_the_programs_own() {
    let status = |word: &str| {
        Kind::ALL
            .iter()
            .find(|kind| kind.word == word)
            .map(|kind| kind.status.as_str().to_owned())
    };
    let mut written = BTreeSet::new();
    let (_, errors) = API
        .split_once("| `type` ends in")
        .expect("the table of errors");
    let table = errors
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    for row in table {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").collect();
        let statuses: Vec<_> = cells[1].split(", ").map(str::trim).collect();
        for (index, word) in quoted(cells[0]).into_iter().enumerate() {
            let told = statuses.get(index).or(statuses.last()).expect("a status");
            assert_eq!(status(word).as_deref(), Some(*told), "{word}");
            written.insert(word);
        }
    }
    let all: BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.word).collect();
    assert_eq!(written, all);
}

#[test]
fn operations_have_names_of_their_own() {
    let document = json();
    let all = operations(&document);
    let ids: BTreeSet<_> = all
        .iter()
        .map(|(_, operation)| operation["operationId"].to_string())
        .collect();
    assert_eq!(ids.len(), all.len(), "{ids:?}");
}

#[test]
fn the_document_says_which_openapi_it_is() {
    assert_eq!(json()["openapi"], "3.1.0");
}
