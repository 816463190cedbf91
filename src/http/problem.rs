//! Errors as they leave: RFC 9457 problem documents. This is the one place that knows which error is which status.
//!
//! The cause of a failure is logged here, once, and the text for people is written here, once.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use uuid::Uuid;

use crate::booking::BookingError;
use crate::database::{CommitError, DatabaseError};
use crate::invalid::InvalidField;
use crate::live::TooManyReaders;
use crate::race::RaceError;
use crate::section::SectionError;
use crate::wallet::TransferError;

/// When a client may try again, in seconds.
const RETRY_AFTER_S: u32 = 1;

/// A problem document, and the status it is sent with.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// What it is: the last word of its type, and stable.
    #[serde(rename = "type", serialize_with = "as_type")]
    pub word: &'static str,
    /// The kind in words.
    pub title: &'static str,
    /// The status of the answer.
    pub status: u16,
    /// What happened this time, and what to do.
    pub detail: String,
    /// Whether what was asked for certainly did not happen, or may have.
    pub outcome: Outcome,
    /// The field that cannot be taken as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Box<str>>,
    /// The seat or wallet that is not there, until its field is named.
    #[serde(skip)]
    missing: Option<Box<str>>,
    /// The attempt, if this is the answer to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Uuid>,
}

/// What can be said about the effect of a request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It certainly did not happen.
    DidNotHappen,
    /// It may have happened.
    MayHaveHappened,
}

/// A type is a URI reference.
fn as_type<S: serde::Serializer>(word: &&'static str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("/problems/{word}"))
}

impl Problem {
    /// A problem of a request that certainly had no effect.
    pub fn new(
        status: StatusCode,
        word: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            word,
            title,
            status: status.as_u16(),
            detail: detail.into(),
            outcome: Outcome::DidNotHappen,
            field: None,
            missing: None,
            attempt: None,
        }
    }

    /// Nothing is there.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// A body that is no JSON.
    pub fn invalid_json(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid-json",
            "The body is no JSON",
            detail,
        )
    }

    /// A body of another kind than the one that is read.
    pub fn unsupported_media_type(expected: &str) -> Self {
        let detail = format!("send the body as content-type {expected}");
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            "Another kind of body is needed",
            detail,
        )
    }

    /// A body that is too long.
    pub fn too_large(limit: usize) -> Self {
        let detail = format!("a body may have at most {limit} bytes");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            "The body is too long",
            detail,
        )
    }

    /// A method that the address does not have.
    pub fn method_not_allowed() -> Self {
        let detail = "this address does not have this method; the header Allow lists those it has";
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "Method not allowed",
            detail,
        )
    }

    /// A change that another site asks for.
    pub fn foreign(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "foreign-origin",
            "The request comes from elsewhere",
            detail,
        )
    }

    /// Names the field of a seat or wallet that is not there; `field` tells it by the row's name.
    pub fn naming(mut self, field: impl FnOnce(&str) -> &'static str) -> Self {
        if let Some(row) = self.missing.take() {
            let field = field(&row);
            self.detail = format!("{field}: {}", self.detail);
            self.field = Some(field.into());
        }
        self
    }

    /// The same problem, as the answer to an attempt.
    pub fn of(mut self, attempt: Uuid) -> Self {
        self.attempt = Some(attempt);
        self
    }

    fn unavailable(word: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, word, title, detail)
    }

    fn conflict(word: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, word, title, detail)
    }

    fn internal(cause: &str) -> Self {
        tracing::error!(cause, "a fault of ours");
        let detail = "this is a fault of doublebook; its log says more";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "A fault of ours",
            detail,
        )
    }
}

impl From<InvalidField> for Problem {
    fn from(invalid: InvalidField) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let mut problem = Self::new(
            status,
            "invalid-field",
            "A field cannot be taken as it is",
            invalid.to_string(),
        );
        problem.field = Some(invalid.field.into());
        problem
    }
}

impl From<SectionError> for Problem {
    fn from(error: SectionError) -> Self {
        let detail = error.to_string();
        match error {
            SectionError::NotFound(_) => Self::not_found(detail),
            SectionError::NoSuchRow(row) => Self {
                missing: Some(row.name.into()),
                ..Self::not_found(detail)
            },
            SectionError::Invalid(invalid) => invalid.into(),
            SectionError::FailpointsOff => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "failpoints-off",
                "Failpoints are off",
                format!("{detail}, so nothing can be paused on it"),
            ),
            SectionError::LockTimeout { .. } => {
                Self::unavailable("lock-timeout", "The lock was not free in time", detail)
            }
            SectionError::Deadlock(cause) => {
                tracing::info!(cause, "the database ended a deadlock");
                let detail = "the database ended this attempt to break a deadlock; try again";
                Self::unavailable("deadlock", "Deadlock", detail)
            }
            SectionError::LockUnavailable(_) => {
                tracing::warn!(cause = detail, "the lock system is not available");
                Self::unavailable(
                    "lock-unavailable",
                    "The lock system is not available",
                    detail,
                )
            }
            SectionError::DatabaseUnavailable(cause) => {
                tracing::warn!(cause, "the database is not available");
                let detail = "the database cannot be reached; try again when it is back";
                Self::unavailable(
                    "database-unavailable",
                    "The database is not available",
                    detail,
                )
            }
            SectionError::DatabaseBusy(cause) => {
                tracing::warn!(cause, "the database is busy");
                let detail = "the database did not answer in time; try again";
                Self::unavailable("database-busy", "The database is busy", detail)
            }
            SectionError::StaleToken { .. } => {
                Self::conflict("stale-token", "The token is stale", detail)
            }
            SectionError::RowChanged(_) => {
                Self::conflict("row-changed", "The row changed meanwhile", detail)
            }
            SectionError::SwitchesChanged => {
                Self::conflict("switches-changed", "The switches changed meanwhile", detail)
            }
            SectionError::LeaseLost => Self::conflict("lease-lost", "The lease was lost", detail),
            SectionError::OutcomeUnknown(cause) => {
                tracing::error!(cause, "the result of a commit is not known");
                let detail =
                    "the commit was sent and its result is not known: look before you try again";
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                let problem = Self::new(
                    status,
                    "outcome-unknown",
                    "The outcome is not known",
                    detail,
                );
                Self {
                    outcome: Outcome::MayHaveHappened,
                    ..problem
                }
            }
            SectionError::ShuttingDown => Self::unavailable(
                "shutting-down",
                "This replica is stopping",
                format!("{detail}; ask another one"),
            ),
            SectionError::TooManyAttempts(_) => Self::unavailable(
                "too-many-attempts",
                "Too many attempts are under way",
                detail,
            ),
            SectionError::Internal(cause) => Self::internal(&cause),
            SectionError::BeginAnew(why) => (*why).into(),
        }
    }
}

impl From<TooManyReaders> for Problem {
    fn from(error: TooManyReaders) -> Self {
        Self::unavailable(
            "too-many-readers",
            "Too many streams are read",
            format!("{error}; ask another one"),
        )
    }
}

impl From<DatabaseError> for Problem {
    fn from(error: DatabaseError) -> Self {
        SectionError::from(error).into()
    }
}

impl From<CommitError> for Problem {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(error) => error.into(),
            CommitError::Unknown(error) => SectionError::OutcomeUnknown(error.to_string()).into(),
        }
    }
}

impl From<BookingError> for Problem {
    fn from(error: BookingError) -> Self {
        match error {
            BookingError::SeatTaken { .. } => Self::conflict(
                "seat-taken",
                "The seat is already booked",
                error.to_string(),
            ),
            BookingError::Section(error) => error.into(),
        }
    }
}

impl From<TransferError> for Problem {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::InsufficientFunds { .. } => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "insufficient-funds",
                "The balance is too small",
                error.to_string(),
            ),
            TransferError::Section(error) => error.into(),
        }
    }
}

impl From<RaceError> for Problem {
    fn from(error: RaceError) -> Self {
        match error {
            RaceError::Needs(_) => Self::conflict(
                "race-needs",
                "The room lacks what this race needs",
                error.to_string(),
            ),
            RaceError::UnderWay => Self::conflict(
                "race-under-way",
                "A race is under way",
                "wait until the race in this room has ended",
            ),
            RaceError::Section(error) => error.into(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER_S.into());
        }
        response
    }
}
