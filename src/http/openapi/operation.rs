//! One operation, from its path to its examples.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::example::{Example, ExampleBuilder};
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::{RequestBody, RequestBodyBuilder};
use utoipa::openapi::{
    Components, Content, ContentBuilder, Header, HttpMethod, ObjectBuilder, PathItem, Paths, Ref,
    RefOr, Required, Response, ResponseBuilder, Schema, Type,
};

use crate::http::kind::Kind;
use crate::http::problem::Problem;

const JSON: &str = "application/json";
const PROBLEM: &str = "application/problem+json";

/// What can happen to every request that asks the database.
pub(super) const DATABASE: &[Kind] = &[
    Kind::DATABASE_UNAVAILABLE,
    Kind::DATABASE_BUSY,
    Kind::INTERNAL,
];

/// What can go wrong in a change of a room.
pub(super) const CHANGE: &[Kind] = &[
    Kind::DEADLOCK,
    Kind::OUTCOME_UNKNOWN,
    Kind::DATABASE_UNAVAILABLE,
    Kind::DATABASE_BUSY,
    Kind::INTERNAL,
];

/// What can be wrong with a JSON body.
pub(super) const BODY: &[Kind] = &[
    Kind::INVALID_JSON,
    Kind::UNSUPPORTED_MEDIA_TYPE,
    Kind::TOO_LARGE,
    Kind::TOO_SLOW,
    Kind::INVALID_FIELD,
];

/// An operation under description.
pub(super) struct Operation {
    method: HttpMethod,
    path: &'static str,
    builder: OperationBuilder,
    body: Option<Body>,
    answers: BTreeMap<u16, Answer>,
    schemas: Vec<(String, RefOr<Schema>)>,
}

struct Body {
    schema: Ref,
    required: bool,
    examples: Vec<(&'static str, Example)>,
}

struct Answer {
    description: String,
    content_type: &'static str,
    schema: Option<RefOr<Schema>>,
    examples: Vec<(&'static str, Example)>,
    headers: Vec<(&'static str, Header)>,
}

impl Operation {
    /// An operation of a tag, with what it does in a few words.
    pub(super) fn new(method: HttpMethod, path: &'static str, tag: &str, summary: &str) -> Self {
        let builder = OperationBuilder::new()
            .tag(tag)
            .summary(Some(summary))
            .operation_id(Some(id(&method, path)))
            .parameters(Some(parameters(path)));
        let changes = !matches!(method, HttpMethod::Get);
        let operation = Self {
            method,
            path,
            builder,
            body: None,
            answers: BTreeMap::new(),
            schemas: Vec::new(),
        };
        if changes {
            operation.problems(&[Kind::FOREIGN_ORIGIN])
        } else {
            operation
        }
    }

    /// More words about it.
    pub(super) fn about(mut self, about: &str) -> Self {
        self.builder = self.builder.description(Some(about));
        self
    }

    /// A header that a client may send.
    pub(super) fn may_send(self, name: &str, about: &str) -> Self {
        self.may_name(ParameterIn::Header, name, about)
    }

    /// What may be asked behind the path's question mark.
    pub(super) fn may_ask(self, name: &str, about: &str) -> Self {
        self.may_name(ParameterIn::Query, name, about)
    }

    fn may_name(mut self, place: ParameterIn, name: &str, about: &str) -> Self {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .description(Some(about))
            .schema(Some(text()));
        self.builder = self.builder.parameter(parameter);
        self
    }

    /// It takes a JSON body.
    pub(super) fn takes<T: ToSchema>(self) -> Self {
        self.takes_body::<T>(true).problems(BODY)
    }

    /// It takes a JSON body that may be left out.
    pub(super) fn may_take<T: ToSchema>(self) -> Self {
        self.takes_body::<T>(false).problems(BODY)
    }

    fn takes_body<T: ToSchema>(mut self, required: bool) -> Self {
        self.body = Some(Body {
            schema: self.component::<T>(),
            required,
            examples: Vec::new(),
        });
        self
    }

    /// It answers with JSON of this type.
    pub(super) fn answers<T: ToSchema>(mut self, status: StatusCode, description: &str) -> Self {
        let schema = self.component::<T>();
        self.answer(status, description, JSON, Some(schema.into()))
    }

    /// It answers with a JSON list of this type.
    pub(super) fn answers_list<T: ToSchema>(
        mut self,
        status: StatusCode,
        description: &str,
    ) -> Self {
        let schema = self.component::<T>().to_array_builder().build();
        self.answer(status, description, JSON, Some(Schema::from(schema).into()))
    }

    /// It answers with text.
    pub(super) fn answers_text(self, content_type: &'static str, description: &str) -> Self {
        self.answer(StatusCode::OK, description, content_type, Some(text()))
    }

    /// It answers without a body.
    pub(super) fn answers_nothing(self, status: StatusCode, description: &str) -> Self {
        self.answer(status, description, JSON, None)
    }

    fn answer(
        mut self,
        status: StatusCode,
        description: &str,
        content_type: &'static str,
        schema: Option<RefOr<Schema>>,
    ) -> Self {
        let answer = Answer {
            description: description.to_owned(),
            content_type,
            schema,
            examples: Vec::new(),
            headers: Vec::new(),
        };
        self.answers.insert(status.as_u16(), answer);
        self
    }

    /// Every answer carries this header.
    pub(super) fn with_header(mut self, name: &'static str, about: &str) -> Self {
        for answer in self.answers.values_mut() {
            answer.headers.push((name, header(about)));
        }
        self
    }

    /// An example of a request with its body, if it takes one. Its answer is told by the same name.
    pub(super) fn asked(mut self, name: &'static str, summary: &str, value: Value) -> Self {
        if let Some(body) = &mut self.body {
            body.examples.push((name, example(summary, value)));
        }
        self
    }

    /// An example of an answer.
    pub(super) fn answered(
        mut self,
        name: &'static str,
        summary: &str,
        status: StatusCode,
        value: impl Into<Value>,
    ) -> Self {
        if let Some(answer) = self.answers.get_mut(&status.as_u16()) {
            answer.examples.push((name, example(summary, value.into())));
        }
        self
    }

    /// What can go wrong; each kind with an example under its word.
    pub(super) fn problems(mut self, kinds: &[Kind]) -> Self {
        let schema = self.component::<Problem>();
        for kind in kinds {
            let status = kind.status;
            let answer = self
                .answers
                .entry(status.as_u16())
                .or_insert_with(|| Answer {
                    description: status.canonical_reason().unwrap_or_default().to_owned(),
                    content_type: PROBLEM,
                    schema: Some(schema.clone().into()),
                    examples: Vec::new(),
                    headers: retry_after(status),
                });
            answer
                .examples
                .push((kind.word, example(kind.title, problem(*kind))));
        }
        self
    }

    fn component<T: ToSchema>(&mut self) -> Ref {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        Ref::from_schema_name(T::name())
    }

    /// The types that it names, each with its name.
    #[cfg(test)]
    pub(super) fn schemas(&self) -> &[(String, RefOr<Schema>)] {
        &self.schemas
    }

    /// Puts it into the document, with the schemas that it names.
    pub(super) fn add_to(self, paths: &mut Paths, components: &mut Components) {
        let mut builder = self.builder.request_body(self.body.map(Body::build));
        for (status, answer) in self.answers {
            builder = builder.response(status.to_string(), answer.build());
        }
        let item = PathItem::new(self.method, builder);
        match paths.paths.get_mut(self.path) {
            Some(there) => there.merge_operations(item),
            None => drop(paths.paths.insert(self.path.to_owned(), item)),
        }
        components.schemas.extend(self.schemas);
    }
}

impl Body {
    fn build(self) -> RequestBody {
        let required = if self.required {
            Required::True
        } else {
            Required::False
        };
        RequestBodyBuilder::new()
            .content(JSON, content(Some(self.schema.into()), self.examples))
            .required(Some(required))
            .build()
    }
}

impl Answer {
    fn build(self) -> Response {
        let mut builder = ResponseBuilder::new().description(self.description);
        if self.schema.is_some() {
            builder = builder.content(self.content_type, content(self.schema, self.examples));
        }
        for (name, header) in self.headers {
            builder = builder.header(name, header);
        }
        builder.build()
    }
}

fn content(schema: Option<RefOr<Schema>>, examples: Vec<(&'static str, Example)>) -> Content {
    ContentBuilder::new()
        .schema(schema)
        .examples_from_iter(examples)
        .build()
}

fn example(summary: &str, value: Value) -> Example {
    ExampleBuilder::new()
        .summary(summary)
        .value(Some(value))
        .build()
}

/// What a problem of this kind looks like.
fn problem(kind: Kind) -> Value {
    let mut problem = Problem::new(kind, kind.example);
    if kind == Kind::INVALID_FIELD {
        problem.field = kind.example.split(' ').next().map(Into::into);
    }
    serde_json::to_value(problem).unwrap_or_default()
}

fn retry_after(status: StatusCode) -> Vec<(&'static str, Header)> {
    let is_soon = status == StatusCode::SERVICE_UNAVAILABLE;
    let soon = || ("Retry-After", header("When to try again, in seconds."));
    is_soon.then(soon).into_iter().collect()
}

fn header(about: &str) -> Header {
    let mut header = Header::new(text());
    header.description = Some(about.to_owned());
    header
}

fn text() -> RefOr<Schema> {
    Schema::from(ObjectBuilder::new().schema_type(Type::String)).into()
}

/// `getRoomsAudit` of `GET /api/rooms/{room}/audit`.
fn id(method: &HttpMethod, path: &str) -> String {
    let method = match method {
        HttpMethod::Get => "get",
        HttpMethod::Put => "put",
        HttpMethod::Post => "post",
        HttpMethod::Patch => "patch",
        HttpMethod::Delete => "delete",
        _ => "other",
    };
    let words = path.trim_start_matches("/api").split(['/', '.']);
    let names = words.filter(|word| !word.is_empty() && !word.starts_with('{'));
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    method.to_owned() + &names.map(capital).collect::<String>()
}

/// The variable parts of a path.
fn parameters(path: &str) -> Vec<Parameter> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(parameter).collect()
}

fn parameter(name: &str) -> Parameter {
    let (about, example) = match name {
        "room" => ("The room: 1 to 40 of a-z, 0-9 and -.", "workshop"),
        "gate" => ("The gate: 1 to 64 characters.", "door"),
        _ => ("", ""),
    };
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(about))
        .schema(Some(text()))
        .example(Some(example.into()))
        .build()
}
