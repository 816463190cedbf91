//! Where locks stand in ZooKeeper's tree.
//!
//! ```text
//! [folder of the address]/doublebook/server                      the ensemble's random id
//! [folder of the address]/doublebook/locks/<key>/<owner>-<session>   one place in the line of a key
//! ```
//!
//! A key is one name in a path. ZooKeeper forbids `.`, `..`, control characters and a part of Unicode, and `/` parts
//! names, so all but ASCII letters, digits, `-`, `_` and `:` are percent-encoded, byte by byte. That can be undone, and
//! a key of 512 bytes becomes at most 1536.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::lock::{claim::Owner, key::Key};

/// What is encoded in the name of a key.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b':');

/// The folder that everything of ours is in.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    root: String,
}

impl Paths {
    /// `folder` is empty or one that may be shared with other programs, without a slash at its end.
    pub(super) fn below(folder: &str) -> Self {
        Self {
            root: format!("{folder}/doublebook"),
        }
    }

    /// Holds the ensemble's random id.
    pub(super) fn server(&self) -> String {
        format!("{}/server", self.root)
    }

    /// Its parent.
    pub(super) fn root(&self) -> &str {
        &self.root
    }

    /// The parent of all lines.
    pub(super) fn locks(&self) -> String {
        format!("{}/locks", self.root)
    }

    /// The parent of those who want this key.
    pub(super) fn line(&self, key: &Key) -> String {
        let name = utf8_percent_encode(key.as_str(), ENCODED);
        format!("{}/{name}", self.locks())
    }
}

/// The name of an owner's place in a line. With its session in it, since a node of an earlier session, whose end
/// this process saw before the server did, may still stand there and is not the owner's any more.
pub(super) fn place(owner: Owner, session: i64) -> String {
    format!("{owner}-{session:x}")
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;

    use super::*;

    #[test]
    fn a_key_is_one_safe_name_that_can_be_read_back() {
        let paths = Paths::below("/shop");
        for text in [
            "seat:main:A1",
            ".",
            "..",
            "a/b",
            "a/../b",
            "/",
            "50 %",
            "%2F",
            "zookeeper",
            "座席 é",
            "\u{e000}\u{ffff}",
            &"é".repeat(256),
        ] {
            let line = paths.line(&Key::parse(text).unwrap());
            let name = line.strip_prefix("/shop/doublebook/locks/").unwrap();
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_:%".contains(&byte)),
                "{name}"
            );
            assert!(name.len() <= 1536);
            assert_eq!(percent_decode_str(name).decode_utf8().unwrap(), text);
        }
    }
}
