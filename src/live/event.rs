//! An event as it goes over the line: a name, JSON, and an id by which a page comes back to where it was.

use std::fmt::Write;
use std::str::FromStr;

use serde::Serialize;

/// An event without a place in the stream yet.
#[derive(Debug, Clone)]
pub(super) struct Event {
    name: &'static str,
    /// One line: JSON escapes what would break it.
    data: String,
}

impl Event {
    /// An event with this value as its data. What cannot be JSON is none, which our own types never are.
    pub(super) fn new(name: &'static str, data: &impl Serialize) -> Self {
        let data = serde_json::to_string(data).unwrap_or_else(|_| "null".to_owned());
        Self { name, data }
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Its text at a place in the stream.
    pub(super) fn at(&self, id: Id) -> String {
        format!("id: {id}\n{}", self.without_id())
    }

    /// Its text without a place: a page that comes back is not taken to have heard it.
    pub(super) fn without_id(&self) -> String {
        let mut text = String::with_capacity(self.data.len() + 32);
        // Writing into a text does not fail.
        let _ = write!(text, "event: {}\ndata: {}\n\n", self.name, self.data);
        text
    }
}

/// A place in the stream of a room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id {
    /// Which stream: another replica, or the same one later, has another.
    pub(super) stream: u64,
    /// Which of its events, from 1.
    pub(super) number: u64,
}

impl Id {
    /// A text that moves a page to this place without an event.
    pub(super) fn alone(self) -> String {
        format!("id: {self}\n\n")
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}-{}", self.stream, self.number)
    }
}

impl FromStr for Id {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        let (stream, number) = text.split_once('-').ok_or(NotAnId)?;
        Ok(Self {
            stream: u64::from_str_radix(stream, 16).map_err(|_| NotAnId)?,
            number: number.parse().map_err(|_| NotAnId)?,
        })
    }
}

/// Not an id of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAnId;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_three_lines_whatever_is_in_it() {
        let id = Id {
            stream: 255,
            number: 7,
        };
        let event = Event::new("seats", &json!({"buyers": ["a\nb\r\u{2028}"]}));
        let text = event.at(id);
        let expected =
            "id: 00000000000000ff-7\nevent: seats\ndata: {\"buyers\":[\"a\\nb\\r\u{2028}\"]}\n\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn an_id_is_read_as_it_was_written_and_nothing_else_is() {
        let id = Id {
            stream: u64::MAX,
            number: 42,
        };
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "-", "7", "x-1", "1-x", "1-1-1", "00000000000000001-1x"] {
            assert_eq!(text.parse::<Id>(), Err(NotAnId), "{text}");
        }
    }
}
