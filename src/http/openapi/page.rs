//! The API's description for people: the document itself as a page, without script.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

use super::document;
use crate::http::pages;
use crate::http::problem::Problem;
use crate::section::SectionError;

const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage {
    style: String,
    icon: String,
    about: String,
    version: String,
    tags: Vec<Tag>,
    schemas: Vec<Object>,
}

/// Operations that belong together.
struct Tag {
    name: String,
    about: String,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    about: String,
    parameters: Vec<Field>,
    body: Option<Content>,
    answers: Vec<Answer>,
}

struct Answer {
    status: String,
    about: String,
    content: Option<Content>,
}

struct Content {
    media_type: String,
    of: Type,
    examples: Vec<Example>,
}

struct Example {
    name: String,
    summary: String,
    text: String,
}

/// A type of the API with its fields, or its values.
struct Object {
    name: String,
    about: String,
    of: Type,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    of: Type,
    required: bool,
    about: String,
}

/// What a value may be, in words, and the type that it leads to.
struct Type {
    words: String,
    link: Option<String>,
}

/// `GET /api`
pub async fn show() -> Response {
    match serde_json::to_value(document()) {
        Ok(document) => pages::page(StatusCode::OK, &ApiPage::of(&document)),
        Err(error) => Problem::from(SectionError::Internal(error.to_string())).into_response(),
    }
}

impl ApiPage {
    fn of(document: &Value) -> Self {
        let tags = list(&document["tags"]).map(|tag| Tag {
            name: text(&tag["name"]),
            about: text(&tag["description"]),
            operations: operations(document, &tag["name"]),
        });
        Self {
            style: pages::file("style.css"),
            icon: pages::file("icon.svg"),
            about: text(&document["info"]["description"]),
            version: text(&document["info"]["version"]),
            tags: tags.collect(),
            schemas: entries(&document["components"]["schemas"])
                .map(Object::of)
                .collect(),
        }
    }
}

/// The operations of a tag, path by path.
fn operations(document: &Value, tag: &Value) -> Vec<Operation> {
    let paths = entries(&document["paths"]);
    let all = paths.flat_map(|(path, item)| {
        METHODS
            .iter()
            .filter_map(move |method| Some((path, *method, item.get(method)?)))
    });
    all.filter(|(.., operation)| operation["tags"][0] == *tag)
        .map(|(path, method, operation)| Operation::of(path, method, operation))
        .collect()
}

impl Operation {
    fn of(path: &str, method: &str, operation: &Value) -> Self {
        Self {
            id: text(&operation["operationId"]),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: text(&operation["summary"]),
            about: text(&operation["description"]),
            parameters: list(&operation["parameters"])
                .map(Field::of_parameter)
                .collect(),
            body: Content::of(&operation["requestBody"]),
            answers: entries(&operation["responses"]).map(Answer::of).collect(),
        }
    }
}

impl Answer {
    fn of((status, answer): (&str, &Value)) -> Self {
        Self {
            status: status.to_owned(),
            about: text(&answer["description"]),
            content: Content::of(answer),
        }
    }
}

impl Content {
    fn of(holder: &Value) -> Option<Self> {
        let (media_type, content) = entries(&holder["content"]).next()?;
        Some(Self {
            media_type: media_type.to_owned(),
            of: Type::of(&content["schema"]),
            examples: entries(&content["examples"]).map(Example::of).collect(),
        })
    }
}

impl Example {
    fn of((name, example): (&str, &Value)) -> Self {
        let value = &example["value"];
        let pretty = || serde_json::to_string_pretty(value).unwrap_or_default();
        Self {
            name: name.to_owned(),
            summary: text(&example["summary"]),
            text: value.as_str().map_or_else(pretty, str::to_owned),
        }
    }
}

impl Object {
    fn of((name, schema): (&str, &Value)) -> Self {
        let required = &schema["required"];
        Self {
            name: name.to_owned(),
            about: text(&schema["description"]),
            of: Type::of(schema),
            fields: entries(&schema["properties"])
                .map(|field| Field::of(field, required))
                .collect(),
        }
    }
}

impl Field {
    fn of((name, schema): (&str, &Value), required: &Value) -> Self {
        Self {
            name: name.to_owned(),
            of: Type::of(schema),
            required: list(required).any(|one| one == name),
            about: text(&schema["description"]),
        }
    }

    fn of_parameter(parameter: &Value) -> Self {
        Self {
            name: text(&parameter["name"]),
            of: Type::of(&parameter["schema"]),
            required: parameter["required"] == true,
            about: text(&parameter["description"]),
        }
    }
}

impl Type {
    fn of(schema: &Value) -> Self {
        Self {
            words: words(schema),
            link: reference(schema).map(str::to_owned),
        }
    }
}

/// What a value of this schema may be.
fn words(schema: &Value) -> String {
    let several = |all: &Value| list(all).map(words).collect::<Vec<_>>().join(" or ");
    if let Some(name) = own_reference(schema) {
        return name.to_owned();
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if schema[choice].is_array() {
            return several(&schema[choice]);
        }
    }
    if schema["enum"].is_array() {
        return list(&schema["enum"])
            .map(text)
            .collect::<Vec<_>>()
            .join(" | ");
    }
    match &schema["type"] {
        Value::String(kind) if kind == "array" => format!("list of {}", words(&schema["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().map(text).collect::<Vec<_>>().join(" or "),
        _ => "anything".to_owned(),
    }
}

/// The first type that a schema leads to.
fn reference(schema: &Value) -> Option<&str> {
    let below = ["oneOf", "anyOf", "allOf"]
        .into_iter()
        .flat_map(|choice| list(&schema[choice]));
    own_reference(schema)
        .or_else(|| below.into_iter().find_map(reference))
        .or_else(|| schema.get("items").and_then(reference))
}

fn own_reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().into_iter().flat_map(Map::iter);
    entries.map(|(name, value)| (name.as_str(), value))
}
