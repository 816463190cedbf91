//! The kinds of problems there are: each with its word, its status and its title, once.
//!
//! The answers are made from this table and the API's description lists it, so neither knows a kind that the other
//! does not.

use axum::http::StatusCode;

/// A kind of problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// The last word of its type. Stable.
    pub word: &'static str,
    /// The status that it is sent with.
    pub status: StatusCode,
    /// The kind in words.
    pub title: &'static str,
    /// What the detail of one may say.
    pub example: &'static str,
}

macro_rules! kinds {
    ($($name:ident = $word:literal, $status:ident, $title:literal, $example:literal;)+) => {
        impl Kind {
            $(
                #[doc = $title]
                pub const $name: Self = Self {
                    word: $word,
                    status: StatusCode::$status,
                    title: $title,
                    example: $example,
                };
            )+

            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }
    };
}

kinds! {
    SEAT_TAKEN = "seat-taken", CONFLICT, "The seat is already booked",
        "seat A1 is already booked by Ben";
    INSUFFICIENT_FUNDS = "insufficient-funds", UNPROCESSABLE_ENTITY, "The balance is too small",
        "alice has 20.00, which is less than 80.00";
    LOCK_TIMEOUT = "lock-timeout", SERVICE_UNAVAILABLE, "The lock was not free in time",
        "waited 5000 ms for seat A1 and did not get it";
    DEADLOCK = "deadlock", SERVICE_UNAVAILABLE, "Deadlock",
        "the database ended this attempt to break a deadlock; try again";
    LOCK_UNAVAILABLE = "lock-unavailable", SERVICE_UNAVAILABLE, "The lock system is not available",
        "redis is not available: no answer";
    DATABASE_UNAVAILABLE = "database-unavailable", SERVICE_UNAVAILABLE, "The database is not available",
        "the database cannot be reached; try again when it is back";
    DATABASE_BUSY = "database-busy", SERVICE_UNAVAILABLE, "The database is busy",
        "the database did not answer in time; try again";
    STALE_TOKEN = "stale-token", CONFLICT, "The token is stale",
        "seat A1 carries token 8, mine is 7: somebody was granted the lock after me";
    ROW_CHANGED = "row-changed", CONFLICT, "The row changed meanwhile",
        "seat A1 was written by somebody else after it was read";
    SWITCHES_CHANGED = "switches-changed", CONFLICT, "The switches changed meanwhile",
        "the room's switches changed, or it was reset, while the attempt was under way";
    LEASE_LOST = "lease-lost", CONFLICT, "The lease was lost",
        "the lease ended before the write";
    OUTCOME_UNKNOWN = "outcome-unknown", INTERNAL_SERVER_ERROR, "The outcome is not known",
        "the commit was sent and its result is not known: look before you try again";
    SHUTTING_DOWN = "shutting-down", SERVICE_UNAVAILABLE, "This replica is stopping",
        "this replica is stopping; ask another one";
    TOO_MANY_ATTEMPTS = "too-many-attempts", SERVICE_UNAVAILABLE, "Too many attempts are under way",
        "5000 attempts are under way on this replica, or as many ask a lock system as it takes at once";
    TOO_MANY_READERS = "too-many-readers", SERVICE_UNAVAILABLE, "Too many streams are read",
        "500 streams are read on this replica, or 100 rooms are watched; ask another one";
    RACE_NEEDS = "race-needs", CONFLICT, "The room lacks what this race needs",
        "paused-holder needs wait_ms of at least ttl_ms + 1000";
    RACE_UNDER_WAY = "race-under-way", CONFLICT, "A race is under way",
        "wait until the race in this room has ended";
    LOAD_UNDER_WAY = "load-under-way", CONFLICT, "A load run is under way",
        "a load run is under way on this replica";
    MAIN_STAYS = "main-stays", CONFLICT, "The room main cannot be deleted",
        "the room main always exists; reset it, or PUT it anew";
    INVALID_JSON = "invalid-json", BAD_REQUEST, "The body is no JSON",
        "expected value at line 1 column 1";
    INVALID_FORM = "invalid-form", BAD_REQUEST, "The form cannot be read",
        "buyer is not UTF-8 text";
    UNSUPPORTED_MEDIA_TYPE = "unsupported-media-type", UNSUPPORTED_MEDIA_TYPE, "Another kind of body is needed",
        "send the body as content-type application/json";
    TOO_LARGE = "too-large", PAYLOAD_TOO_LARGE, "The body is too long",
        "a body may have at most 65536 bytes";
    TOO_SLOW = "too-slow", REQUEST_TIMEOUT, "The body did not arrive in time",
        "a body must arrive within 15 s";
    INVALID_FIELD = "invalid-field", UNPROCESSABLE_ENTITY, "A field cannot be taken as it is",
        "buyer must be 1 to 64 characters long";
    FAILPOINTS_OFF = "failpoints-off", UNPROCESSABLE_ENTITY, "Failpoints are off",
        "this replica was started without failpoints, so nothing can be paused on it";
    NOT_FOUND = "not-found", NOT_FOUND, "Not found",
        "there is no room workshop";
    METHOD_NOT_ALLOWED = "method-not-allowed", METHOD_NOT_ALLOWED, "Method not allowed",
        "this address does not have this method; the header Allow lists those it has";
    FOREIGN_ORIGIN = "foreign-origin", FORBIDDEN, "The request comes from elsewhere",
        "a page of http://evil.example may not ask for changes here";
    INTERNAL = "internal", INTERNAL_SERVER_ERROR, "A fault of ours",
        "this is a fault of doublebook; its log says more";
}

impl Kind {
    /// The kind of a problem document, by its `type`.
    pub fn of_type(uri: &str) -> Option<Self> {
        let word = uri.rsplit('/').next()?;
        Self::ALL.iter().copied().find(|kind| kind.word == word)
    }
}
