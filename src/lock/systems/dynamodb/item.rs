//! The item of a lock, and the four changes that are ever made to it.
//!
//! | attribute | while it is held | after it was freed |
//! |---|---|---|
//! | `name` | `lock:` and the key | the same |
//! | `owner_id` | the acquisition that holds it | not there |
//! | `version` | 128 random bits, drawn anew by each grant and each renewal | not there |
//! | `lease_ms` | how long the version must stand still for the lease to be over | not there |
//! | `last_token` | the token of the last grant | the same |
//!
//! No attribute is a time, and no change deletes an item: its token would begin anew.
//! None of these names is a reserved word of DynamoDB's expressions.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    link::{Limit, Repeat},
    table::{Change, Item, Table},
    watch::Standing,
};
use crate::lock::{
    claim::{Claim, Owner, Token},
    error::LockError,
    key::Key,
};

/// Stands before the key in the name of its item.
const PREFIX: &str = "lock:";

/// The item that says which table this is. The message about a server that was replaced tells its name.
pub(super) const SERVER: &str = "{doublebook}:server";

const GRANT: &str = "SET owner_id = :owner, version = :version, lease_ms = :lease, \
                     last_token = if_not_exists(last_token, :none) + :one";
const RENEW: &str = "SET version = :version, lease_ms = :lease";
const FREE: &str = "REMOVE owner_id, version, lease_ms";
const DRAW: &str = "SET server_id = if_not_exists(server_id, :draw)";

const IS_FREE: &str = "attribute_not_exists(owner_id)";
const IS_FREE_OR_OVER: &str = "attribute_not_exists(owner_id) OR version = :over";
const IS_HELD: &str = "attribute_exists(owner_id)";
const IS_MINE: &str = "owner_id = :owner";

/// The answer to one ask for one key.
pub(super) enum Asked {
    Granted(Token),
    /// The owner has it from an earlier ask, whose answer was lost.
    Mine(Token),
    /// Another's.
    Held(Standing),
}

/// Asks for one key: it is granted when it is free, or when its version is still the one whose lease is `over`.
pub(super) async fn ask(
    table: &Table,
    key: &Key,
    claim: &Claim,
    over: Option<String>,
    limit: Limit,
) -> Result<Asked, LockError> {
    let change = table.change(name(key), limit, Repeat::Once, |update| {
        let update = update
            .update_expression(GRANT)
            .expression_attribute_values(":owner", text(claim.owner))
            .expression_attribute_values(":version", version())
            .expression_attribute_values(":lease", lease(claim.ttl))
            .expression_attribute_values(":none", number(0))
            .expression_attribute_values(":one", number(1));
        match &over {
            None => update.condition_expression(IS_FREE),
            Some(version) => update
                .condition_expression(IS_FREE_OR_OVER)
                .expression_attribute_values(":over", text(version)),
        }
    });
    let answer = match change.await? {
        Change::Made(item) => token(&item).map(Asked::Granted),
        Change::Refused(item) => item.and_then(|item| held(&item, claim.owner)),
    };
    answer.ok_or_else(|| no_lock(table, &name(key)))
}

/// Makes the owner's lease last longer, and says whether it was the owner's.
///
/// The condition is the owner, which no other acquisition ever has, and not the version that was written last: a renewal
/// that was carried out while its answer was lost would make the next one fail. (cirello-io/dynamolock, issue 280.)
pub(super) async fn renew(
    table: &Table,
    key: &Key,
    claim: &Claim,
    limit: Limit,
) -> Result<bool, LockError> {
    let change = table.change(name(key), limit, Repeat::Once, |update| {
        update
            .update_expression(RENEW)
            .condition_expression(IS_MINE)
            .expression_attribute_values(":owner", text(claim.owner))
            .expression_attribute_values(":version", version())
            .expression_attribute_values(":lease", lease(claim.ttl))
    });
    Ok(matches!(change.await?, Change::Made(_)))
}

/// Frees a key if it is the owner's, or whoever's it is when no owner is named. Says whether it did; a second try could
/// not tell.
pub(super) async fn free(
    table: &Table,
    key: &Key,
    owner: Option<Owner>,
    limit: Limit,
) -> Result<bool, LockError> {
    let change = table.change(name(key), limit, Repeat::Never, |update| {
        let update = update.update_expression(FREE);
        match owner {
            None => update.condition_expression(IS_HELD),
            Some(owner) => update
                .condition_expression(IS_MINE)
                .expression_attribute_values(":owner", text(owner)),
        }
    });
    Ok(matches!(change.await?, Change::Made(_)))
}

/// The random id of the table; `draw` if it has none.
pub(super) async fn server(table: &Table, draw: &str, limit: Limit) -> Result<String, LockError> {
    let change = table.change(SERVER.to_owned(), limit, Repeat::Once, |update| {
        update
            .update_expression(DRAW)
            .expression_attribute_values(":draw", text(draw))
    });
    let (Change::Made(item) | Change::Refused(Some(item))) = change.await? else {
        return Err(no_lock(table, SERVER));
    };
    let id = item.get("server_id").and_then(|id| id.as_s().ok());
    id.cloned().ok_or_else(|| no_lock(table, SERVER))
}

fn name(key: &Key) -> String {
    format!("{PREFIX}{key}")
}

/// Who holds it, in answer to an ask of this owner.
fn held(item: &Item, asker: Owner) -> Option<Asked> {
    let owner = item.get("owner_id")?.as_s().ok()?;
    if *owner == asker.to_string() {
        return token(item).map(Asked::Mine);
    }
    let lease = item.get("lease_ms")?.as_n().ok()?.parse().ok()?;
    Some(Asked::Held(Standing {
        version: item.get("version")?.as_s().ok()?.clone(),
        lease: Duration::from_millis(lease),
    }))
}

fn token(item: &Item) -> Option<Token> {
    let number = item.get("last_token")?.as_n().ok()?;
    number.parse().ok().and_then(Token::new)
}

fn version() -> AttributeValue {
    text(format_args!("{:032x}", rand::random::<u128>()))
}

/// In ms, rounded up: who watches must not find it over before its holder does.
fn lease(ttl: Duration) -> AttributeValue {
    number(ttl.as_nanos().div_ceil(1_000_000))
}

fn text(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

fn number(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

fn no_lock(table: &Table, name: &str) -> LockError {
    table.link.unavailable(format_args!(
        "the item {name:?} of table {} holds something that is no lock",
        table.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_never_written_shorter_than_it_is() {
        for (ttl, written) in [
            (Duration::from_millis(10), "10"),
            (Duration::from_micros(10_001), "11"),
        ] {
            assert_eq!(lease(ttl), AttributeValue::N(written.to_owned()));
        }
    }

    #[test]
    fn an_item_tells_who_holds_it() {
        let (mine, other) = (Owner::random(), Owner::random());
        let mut item = Item::from([
            ("owner_id".to_owned(), text(mine)),
            ("version".to_owned(), text("v")),
            ("lease_ms".to_owned(), number(2_000)),
            ("last_token".to_owned(), number(7)),
        ]);
        assert!(matches!(held(&item, mine), Some(Asked::Mine(token)) if token.get() == 7));
        let Some(Asked::Held(standing)) = held(&item, other) else {
            panic!("it is another's");
        };
        assert_eq!(standing.version, "v");
        assert_eq!(standing.lease, Duration::from_secs(2));
        item.remove("version");
        assert!(held(&item, other).is_none(), "that is no lock");
    }
}
