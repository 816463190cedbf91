//! What a section gives to the write: which conditions each row must meet. Only a section makes one.

use crate::database::fence::{Ask, Condition, RowId, Stamp};
use crate::room::{Fencing, Switches};

/// The protection of one attempt's write. It exists with locking off, too: then it asks for nothing but the epoch.
#[derive(Debug, Clone)]
pub struct Protection {
    rows: Vec<(RowId, Condition)>,
}

impl Protection {
    /// `rows` are the rows that were read, with the token of their lock and the version they had.
    pub(super) fn new(switches: &Switches, epoch: i64, rows: &[(RowId, Option<i64>, i64)]) -> Self {
        let rows = rows
            .iter()
            .map(|(row, token, version)| {
                let condition = Condition {
                    stamp: Stamp {
                        epoch,
                        token: *token,
                    },
                    ask: ask(switches.fencing, *token),
                    version: switches.compare.then_some(*version),
                };
                (row.clone(), condition)
            })
            .collect();
        Self { rows }
    }

    /// What a row must meet. A row that the section did not read can meet nothing.
    pub fn condition(&self, row: &RowId) -> Condition {
        self.rows
            .iter()
            .find(|(known, _)| known == row)
            .map_or(NEVER, |(_, condition)| *condition)
    }
}

/// No row has a stamp older than this.
const NEVER: Condition = Condition {
    stamp: Stamp {
        epoch: 0,
        token: None,
    },
    ask: Ask::Older,
    version: None,
};

/// Without a token there is nothing to fence; all that can be asked is that no later epoch has begun.
fn ask(fencing: Fencing, token: Option<i64>) -> Ask {
    match (fencing, token) {
        (Fencing::Off, _) => Ask::Nothing,
        (Fencing::OnWrite | Fencing::FromFirstRead, None) => Ask::NoLaterEpoch,
        (Fencing::OnWrite, Some(_)) => Ask::Older,
        (Fencing::FromFirstRead, Some(_)) => Ask::Mine,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::fence::Table;
    use crate::lock::LockName;

    #[test]
    fn without_a_token_only_the_epoch_can_be_asked_and_with_fencing_off_nothing_is() {
        assert_eq!(ask(Fencing::FromFirstRead, Some(7)), Ask::Mine);
        assert_eq!(ask(Fencing::OnWrite, Some(7)), Ask::Older);
        assert_eq!(ask(Fencing::FromFirstRead, None), Ask::NoLaterEpoch);
        assert_eq!(ask(Fencing::OnWrite, None), Ask::NoLaterEpoch);
        assert_eq!(ask(Fencing::Off, Some(7)), Ask::Nothing);
    }

    #[test]
    fn a_row_that_was_not_read_cannot_be_written() {
        let row = |name: &str| RowId {
            table: Table::Seat,
            name: name.to_owned(),
        };
        let switches = Switches::on(LockName::Table);
        let protection = Protection::new(&switches, 3, &[(row("A1"), Some(7), 0)]);
        assert_eq!(protection.condition(&row("A1")).ask, Ask::Mine);
        let other = protection.condition(&row("A2"));
        assert_eq!((other.ask, other.stamp.epoch), (Ask::Older, 0));
    }
}
