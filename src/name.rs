//! Names that people give: buyers, wallets, seats and gates.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The longest name, in characters.
pub const LONGEST_NAME: usize = 64;

/// 1 to 64 characters of any script, none of them a control character, at least one of them visible.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, examples("Ana"))]
pub struct Name(String);

impl Name {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAName {
    /// Longer than allowed, or empty.
    #[error("must be 1 to {LONGEST_NAME} characters long")]
    Length,
    /// Holds a control character, a line break or NUL.
    #[error("must not hold control characters")]
    Control,
    /// Holds nothing that can be seen.
    #[error("must hold at least one visible character")]
    Invisible,
}

impl FromStr for Name {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        if !(1..=LONGEST_NAME).contains(&text.chars().count()) {
            return Err(NotAName::Length);
        }
        if text.chars().any(breaks_the_line) {
            return Err(NotAName::Control);
        }
        if text.chars().all(is_invisible) {
            return Err(NotAName::Invisible);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn breaks_the_line(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// White space, and the characters of Unicode that only steer how others are drawn.
fn is_invisible(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{202a}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_any_script_are_names() {
        for name in [
            "Ana",
            "张伟",
            "👩‍👩‍👧",
            "e\u{301}",
            "<b>Ben</b>",
            "a\u{202e}b",
            " x ",
        ] {
            assert_eq!(name.parse::<Name>().unwrap().as_str(), name);
        }
        assert!("x".repeat(64).parse::<Name>().is_ok());
        assert!(
            "😀".repeat(64).parse::<Name>().is_ok(),
            "characters are counted, not bytes"
        );
    }

    #[test]
    fn what_cannot_be_seen_or_shown_is_no_name() {
        assert_eq!("".parse::<Name>(), Err(NotAName::Length));
        assert_eq!("x".repeat(65).parse::<Name>(), Err(NotAName::Length));
        for text in ["\0", "a\nb", "a\u{7f}", "a\u{2028}b", "a\u{85}"] {
            assert_eq!(text.parse::<Name>(), Err(NotAName::Control), "{text:?}");
        }
        for text in [" ", "\u{200b}", "\u{202e}", "\u{a0}\u{3164}"] {
            assert_eq!(text.parse::<Name>(), Err(NotAName::Invisible), "{text:?}");
        }
    }
}
