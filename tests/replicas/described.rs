//! A replica does what its own description says: every example of a request is sent to it.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{A, Answer, Database, Replica::B, Room, World};

on_both_databases!(
    every_example_is_answered_as_described,
    a_problem_is_of_a_described_kind,
    the_description_is_a_page_without_script,
);

/// A stream does not end: only its beginning is looked at.
const STREAM: &str = "text/event-stream";

/// The description as a replica gives it.
struct Description(Value);

/// An operation, or one example of a request to it.
struct Asked<'a> {
    method: Method,
    path: &'a str,
    operation: &'a Value,
    /// Which example; none where an operation takes no body.
    example: Option<(&'a str, &'a Value)>,
}

impl Description {
    async fn of(world: &World) -> Self {
        let answer = world.get(A, "/api/openapi.json").await;
        assert_eq!(answer.header("content-type"), "application/json");
        Self(answer.json())
    }

    fn requests(&self) -> Vec<Asked<'_>> {
        let mut requests = Vec::new();
        for (path, item) in entries(&self.0["paths"]) {
            for (method, operation) in entries(item) {
                let method: Method = method.to_uppercase().parse().expect("a method");
                let examples = &operation["requestBody"]["content"]["application/json"]["examples"];
                let mut examples: Vec<_> = entries(examples)
                    .map(|(name, example)| Some((name, &example["value"])))
                    .collect();
                if examples.is_empty() {
                    examples.push(None);
                }
                requests.extend(examples.into_iter().map(|example| Asked {
                    method: method.clone(),
                    path,
                    operation,
                    example,
                }));
            }
        }
        requests
    }

    /// Fails unless a value has every field that its schema describes as always there, and no other.
    fn describes(&self, schema: &Value, value: &Value, what: &str) {
        let mut strict = schema.clone();
        strict["components"] = self.0["components"].clone();
        close(&mut strict);
        let validator = jsonschema::validator_for(&strict).expect("a schema");
        let errors: Vec<_> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:#?}\n{value}");
    }
}

/// No field of an object but those that are described.
fn close(schema: &mut Value) {
    if schema["properties"].is_object() {
        schema["additionalProperties"] = json!(false);
    }
    match schema {
        Value::Object(below) => below.values_mut().for_each(close),
        Value::Array(below) => below.iter_mut().for_each(close),
        _ => {}
    }
}

impl Asked<'_> {
    fn name(&self) -> String {
        let example = self.example.map(|(name, _)| name).unwrap_or_default();
        format!("{} {} {example}", self.method, self.path)
    }

    /// The status and the answer under which the example is told, or the first success.
    fn promised(&self) -> (&str, &Value) {
        let mut answers = entries(&self.operation["responses"]);
        let told = answers.find(|(status, answer)| match self.example {
            Some((name, _)) => {
                entries(&answer["content"]).any(|(_, body)| body["examples"][name].is_object())
            }
            None => status.starts_with('2'),
        });
        told.unwrap_or_else(|| panic!("{}: an answer", self.name()))
    }

    /// What its example says of itself: the room is new, and a race has been run in it where one is told of.
    async fn prepares(&self, world: &World) -> Room {
        if self.method == Method::PUT && self.promised().0 == "201" {
            return world.no_room("described-new");
        }
        let room = world.room("described").await;
        if self.path.ends_with("/races/last") {
            room.race("one-seat").await;
        }
        room
    }

    fn request(&self, world: &World, room: &Room) -> RequestBuilder {
        let path = self.path.replace("{room}", &room.name);
        let request = world.request(A, self.method.clone(), &path.replace("{gate}", "door"));
        match self.example {
            Some((_, body)) => request.json(body),
            None => request,
        }
    }
}

async fn every_example_is_answered_as_described(database: Database) {
    let world = World::shared(database).await;
    let description = Description::of(&world).await;
    for asked in description.requests() {
        let room = asked.prepares(&world).await;
        let (status, promised) = asked.promised();
        let request = asked.request(&world, &room);
        let response = request.send().await.expect("an answer");
        let what = asked.name();
        assert_eq!(response.status().as_str(), status, "{what}: {response:?}");
        for (name, _) in entries(&promised["headers"]) {
            assert!(
                response.headers().contains_key(name),
                "{what}: {name}: {response:?}"
            );
        }
        let media_type = response.headers().get("content-type").cloned();
        let Some((expected, body)) = entries(&promised["content"]).next() else {
            assert_eq!(response.text().await.expect("a body"), "", "{what}");
            continue;
        };
        assert_eq!(media_type.expect("a type"), expected, "{what}");
        if expected == STREAM {
            continue;
        }
        let text = response.text().await.expect("a body");
        if expected.ends_with("json") {
            let value = serde_json::from_str(&text).expect("JSON");
            description.describes(&body["schema"], &value, &what);
        }
    }
}

/// Those that no example of a request brings about.
async fn a_problem_is_of_a_described_kind(database: Database) {
    let world = World::shared(database).await;
    let description = Description::of(&world).await;
    let schema = json!({"$ref": "#/components/schemas/Problem"});
    let room = world.room("described").await;
    room.books("Ana", "A1").await.is("booked");
    let problems = [
        room.books("Ben", "A1").on(B).await,
        world.get(A, "/api/rooms/nowhere").await,
        world.get(A, "/api/nowhere").await,
        room.posts("/bookings", None, "{}").await,
        room.posts("/bookings", Some("application/json"), "{").await,
        Answer::to(world.request(A, Method::DELETE, "/api/rooms/main"))
            .await
            .expect("an answer"),
        Answer::to(world.request(A, Method::PATCH, "/api/rooms/main"))
            .await
            .expect("an answer"),
    ];
    for answer in problems {
        let word = answer.problem();
        description.describes(&schema, &answer.json(), &word);
    }
}

async fn the_description_is_a_page_without_script(database: Database) {
    let world = World::shared(database).await;
    let description = Description::of(&world).await;
    let page = world.get(A, "/api").await;
    let room = world.get(A, "/").await;
    assert_eq!(page.status, 200);
    let policy = "content-security-policy";
    assert_eq!(page.header(policy), room.header(policy));
    assert!(!page.text.contains("<script>"), "no script of its own");
    for asked in description.requests() {
        let summary = asked.operation["summary"].as_str().expect("a summary");
        assert!(page.text.contains(summary), "{summary}");
        assert!(page.text.contains(asked.path), "{}", asked.path);
    }
    for (name, _) in entries(&description.0["components"]["schemas"]) {
        assert!(page.text.contains(&format!("id=\"type-{name}\"")), "{name}");
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.as_str(), value))
}
