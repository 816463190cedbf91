//! Words that several parts of the page share.

use std::collections::BTreeSet;

use crate::wallet::Money;

/// How something ended, as the page shows it: by a word, a colour and a pattern, never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It is done.
    Right,
    /// It did not happen.
    Refused,
    /// It is not known.
    Unknown,
}

impl Tone {
    /// The class that draws it.
    pub fn class(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }
}

/// What an outcome means, as the rest of a sentence.
pub fn outcome(word: &str) -> (&str, Tone) {
    let said = match word {
        "booked" => return ("booked", Tone::Right),
        "transferred" => return ("done, the money moved", Tone::Right),
        "outcome-unknown" => {
            let said = "not known, the commit was sent and not answered";
            return (said, Tone::Unknown);
        }
        "no-answer" => return ("not known, the replica did not answer", Tone::Unknown),
        "seat-taken" => "refused, the seat is already booked",
        "insufficient-funds" => "refused, the balance is too small",
        "lock-timeout" => "gave up, the lock was not free in time",
        "deadlock" => "ended by the database to break a deadlock",
        "lock-unavailable" => "not tried, the lock system is not available",
        "database-unavailable" => "not tried, the database is not available",
        "database-busy" => "gave up, the database did not answer in time",
        "stale-token" => "refused by the fence, the token was stale",
        "row-changed" => "refused by compare, the row had changed since it was read",
        "switches-changed" => "refused, the switches changed meanwhile",
        "lease-lost" => "stopped before the write, the lease was over",
        "shutting-down" => "cut short, the replica is stopping",
        "too-many-attempts" => "not tried, too many attempts were under way",
        other => other,
    };
    (said, Tone::Refused)
}

/// Tokens by their last digits. They are long, since some lock systems begin with a time, and what all of them share at
/// the front tells nobody anything. The diagram names them in the same way (`static/diagram/words.js`).
#[derive(Debug)]
pub struct TokenNames {
    /// How many digits are left out.
    cut: usize,
}

impl TokenNames {
    /// For these tokens: different ones have different names.
    pub fn of(tokens: impl IntoIterator<Item = i64>) -> Self {
        let tokens: BTreeSet<i64> = tokens.into_iter().collect();
        let texts: Vec<String> = tokens.iter().map(i64::to_string).collect();
        let shared = match &texts[..] {
            [] => 0,
            [only] => only.len().saturating_sub(6),
            [first, others @ ..] => {
                let shared = others.iter().map(|other| shared_front(first, other));
                shared.min().unwrap_or_default()
            }
        };
        let shortest = texts.iter().map(String::len).min().unwrap_or_default();
        Self {
            cut: shared.min(shortest.saturating_sub(4)),
        }
    }

    /// The name of one of them.
    pub fn name(&self, token: &i64) -> String {
        let text = token.to_string();
        match text.get(self.cut..) {
            Some(rest) if self.cut > 3 => format!("…{rest}"),
            _ => text,
        }
    }
}

/// How many digits are alike at the front of two numbers of one length.
fn shared_front(one: &str, other: &str) -> usize {
    if one.len() != other.len() {
        return 0;
    }
    let pairs = one.bytes().zip(other.bytes());
    pairs.take_while(|(one, other)| one == other).count()
}

/// An amount with a real minus sign.
pub fn signed(amount: Money) -> String {
    amount.to_string().replace('-', "−")
}

/// `1 seat`, `2 seats`.
pub fn count(n: usize, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {what}{s}")
}

/// Milliseconds as people say them.
pub fn seconds(ms: u32) -> String {
    if ms < 1000 {
        format!("{ms} ms")
    } else {
        format!("{} s", f64::from(ms) / 1000.0)
    }
}

/// Milliseconds of a measured time, as exact as is useful.
pub fn milliseconds(ms: f64) -> String {
    format!("{ms:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_named_by_where_they_differ() {
        let names = |tokens: &[i64]| {
            let names = TokenNames::of(tokens.iter().copied());
            tokens
                .iter()
                .map(|token| names.name(token))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&[57_471_056_124_736, 57_471_056_156_896]),
            ["…24736", "…56896"]
        );
        assert_eq!(names(&[57_471_056_124_736]), ["…124736"]);
        assert_eq!(names(&[100_001, 100_002]), ["100001", "100002"]);
        assert_eq!(names(&[10_000_001, 10_000_002]), ["…0001", "…0002"]);
        assert_eq!(names(&[7, 57_471_056_124_736]), ["7", "57471056124736"]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn numbers_are_said_as_people_say_them() {
        assert_eq!(
            [seconds(100), seconds(2000), seconds(2500)],
            ["100 ms", "2 s", "2.5 s"]
        );
        assert_eq!([count(1, "seat"), count(0, "seat")], ["1 seat", "0 seats"]);
        let debt = "20".parse::<Money>().unwrap() - "80".parse().unwrap();
        assert_eq!(signed(debt), "−60.00");
    }

    #[test]
    fn only_what_certainly_did_not_happen_is_called_refused() {
        assert_eq!(outcome("outcome-unknown").1, Tone::Unknown);
        assert_eq!(outcome("no-answer").1, Tone::Unknown);
        assert_eq!(outcome("seat-taken").1, Tone::Refused);
        assert_eq!(
            outcome("a-word-of-later"),
            ("a-word-of-later", Tone::Refused)
        );
    }
}
