//! One try to book or to transfer, as a client asks for it.

use std::pin::Pin;

use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::answer::Answer;
use super::world::{Connection, Replica};

/// An attempt that is not sent yet: await it for its answer, or [`start`](Attempt::starts) it and look later.
pub struct Attempt {
    connection: Connection,
    /// Below `/api`.
    path: String,
    body: Map<String, Value>,
}

impl Attempt {
    pub(super) fn new(connection: Connection, path: String, body: Value) -> Self {
        let Value::Object(body) = body else {
            panic!("a body is an object")
        };
        Self {
            connection,
            path,
            body,
        }
    }

    /// Sent to this replica instead of A.
    pub fn on(mut self, replica: Replica) -> Self {
        self.connection.replica = replica;
        self
    }

    /// With this UUID as its label.
    pub fn labelled(self, attempt: &str) -> Self {
        self.with("attempt", json!(attempt))
    }

    /// Waits once at this point of its walk, until its gate is opened or its time is over.
    pub fn pausing_at(self, point: &str) -> Self {
        self.pause("at", json!(point))
    }

    /// The gate it waits at.
    pub fn at_gate(self, gate: &str) -> Self {
        self.pause("gate", json!(gate))
    }

    /// How long it waits at most.
    pub fn for_ms(self, ms: u64) -> Self {
        self.pause("ms", json!(ms))
    }

    /// Its renewal sleeps with it, as if the whole process did.
    pub fn frozen(self) -> Self {
        self.pause("freeze", json!(true))
    }

    /// With any other field.
    pub fn with(mut self, field: &str, value: Value) -> Self {
        self.body.insert(field.to_owned(), value);
        self
    }

    /// Sends it in a task of its own.
    pub fn starts(self) -> Underway {
        Underway(tokio::spawn(self.sends()))
    }

    /// Sends it; an error means that the replica went away without an answer.
    pub async fn sends(self) -> Result<Answer, reqwest::Error> {
        Answer::to(self.connection.post(&self.path).json(&self.body)).await
    }

    fn pause(mut self, field: &str, value: Value) -> Self {
        self.body
            .entry("pause")
            .or_insert_with(|| json!({}))
            .as_object_mut()
            .expect("a pause is an object")
            .insert(field.to_owned(), value);
        self
    }
}

impl IntoFuture for Attempt {
    type Output = Answer;
    type IntoFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async { self.sends().await.expect("an answer") })
    }
}

/// An attempt that was sent and whose answer is looked at later.
pub struct Underway(JoinHandle<Result<Answer, reqwest::Error>>);

impl Underway {
    /// Its answer.
    pub async fn answer(self) -> Answer {
        self.result().await.expect("an answer")
    }

    /// Its answer, or why there is none.
    pub async fn result(self) -> Result<Answer, reqwest::Error> {
        self.0.await.expect("the client did not panic")
    }

    /// Closes its connection without waiting for the answer.
    pub fn hangs_up(self) {
        self.0.abort();
    }

    /// Fails when the answer is there already.
    #[track_caller]
    pub fn is_not_answered(&self) {
        assert!(!self.0.is_finished(), "it was answered too early");
    }
}
