//! What is called how at the server.
//!
//! Each lock has a folder of its own, and each claim on it a key in that folder:
//! `doublebook/lock/<name of the lock>/<lease>-<number>`. The name of the lock is percent-encoded, so that it holds no
//! separator: no lock's folder lies in another's, and the end of the folder's name keeps `a` apart from `ab`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::lock::key::Key;

/// Where the server's random id is kept.
pub(super) const SERVER: &str = "doublebook/server";

/// What may stand in a name as it is. Everything else, the separator and the percent sign above all, is encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b':');

/// The folder of a lock, with its separator.
pub(super) fn folder(key: &Key) -> String {
    let name = utf8_percent_encode(key.as_str(), ENCODED);
    format!("doublebook/lock/{name}/")
}

/// What a claim calls its keys: after the lease that it began with, which is no other process's, and a number that no
/// other claim of this process has now.
pub(super) fn claim(lease: i64, number: u32) -> String {
    format!("{lease:x}-{number}")
}

/// The key of a claim in the folder of a lock.
pub(super) fn place(key: &Key, claim: &str) -> String {
    format!("{}{claim}", folder(key))
}

/// The key whose version keeps late requests of a session out.
pub(super) fn barrier(lease: i64) -> String {
    format!("doublebook/session/{lease:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(text: &str) -> String {
        folder(&Key::parse(text).unwrap())
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(folder_of("main:seat:A1"), "doublebook/lock/main:seat:A1/");
    }

    #[test]
    fn no_folder_lies_in_another_and_none_means_two_locks() {
        let names = [
            "a", "ab", "a/b", "a%2Fb", "a/", "/a", "..", ".", "%", " ", "é", "e\u{301}",
        ];
        for one in names {
            for other in names {
                let inside = folder_of(other).starts_with(&folder_of(one));
                assert_eq!(inside, one == other, "{one:?} {other:?}");
            }
        }
    }
}
