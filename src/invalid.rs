//! Bad input: which field, and what it should have been.

use serde::{Deserialize, Deserializer};

/// A field that cannot be taken as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidField {
    /// The field's name in the request.
    pub field: String,
    /// What it must be, as the rest of a sentence that begins with the field's name.
    pub problem: String,
}

impl InvalidField {
    /// Names a field and what is wrong with it.
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            problem: problem.into(),
        }
    }
}

/// A field that is there must have a value: `null` is no wish.
pub fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}
