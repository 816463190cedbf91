//! The table of all locks: one item for each key, and one that says which table this is.
//!
//! It is made by the first request that misses it, with billing per request, by however many replicas at once. It has
//! no expiry of its own (`TimeToLive`): that would delete items, and their counters with them, long after they were due.
//! Every change is one conditional `UpdateItem`, which DynamoDB carries out alone and on a majority of its copies.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    error::BuildError,
    operation::{
        create_table::CreateTableError,
        describe_table::DescribeTableError,
        update_item::{UpdateItemError, builders::UpdateItemFluentBuilder},
    },
    types::{
        AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ReturnValue,
        ReturnValuesOnConditionCheckFailure, ScalarAttributeType, TableStatus,
    },
};
use tokio::time::{Instant, sleep, timeout_at};

use super::link::{Failure, Link, Repeat};
use crate::lock::{backoff::Backoff, error::LockError};

/// The attribute that names an item.
const NAME: &str = "name";

/// The pauses between two looks at a table that is being made.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));

/// What an item holds besides its name.
pub(super) type Item = HashMap<String, AttributeValue>;

#[derive(Debug)]
pub(super) struct Table {
    pub(super) link: Link,
    pub(super) name: String,
}

/// What became of a conditional change.
#[derive(Debug)]
pub(super) enum Change {
    /// It was made; this is the item now.
    Made(Item),
    /// The condition does not hold; this is the item, if there is one.
    Refused(Option<Item>),
}

impl Table {
    /// Makes one conditional change to an item, and the table when there is none. `describe` adds the change and its
    /// condition to the request.
    pub(super) async fn change(
        &self,
        item: String,
        until: Instant,
        repeat: Repeat,
        describe: impl Fn(UpdateItemFluentBuilder) -> UpdateItemFluentBuilder,
    ) -> Result<Change, LockError> {
        let answer = self.update(&item, until, repeat, &describe).await;
        if !matches!(&answer, Err(failure) if is_missing(failure)) {
            return self.read(answer);
        }
        self.create(until).await?;
        self.read(self.update(&item, until, repeat, &describe).await)
    }

    async fn update(
        &self,
        item: &str,
        until: Instant,
        repeat: Repeat,
        describe: &impl Fn(UpdateItemFluentBuilder) -> UpdateItemFluentBuilder,
    ) -> Result<Item, Failure<UpdateItemError>> {
        let updated = self.link.send(until, repeat, async |client: Client| {
            let update = client
                .update_item()
                .table_name(&self.name)
                .key(NAME, AttributeValue::S(item.to_owned()))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            describe(update).send().await
        });
        Ok(updated.await?.attributes.unwrap_or_default())
    }

    fn read(&self, answer: Result<Item, Failure<UpdateItemError>>) -> Result<Change, LockError> {
        match answer {
            Ok(item) => Ok(Change::Made(item)),
            Err(Failure::Answered(UpdateItemError::ConditionalCheckFailedException(refusal))) => {
                Ok(Change::Refused(refusal.item))
            }
            Err(Failure::Answered(other)) => Err(self.link.refusal(&other)),
            Err(Failure::NoAnswer(error)) => Err(error),
        }
    }

    /// Makes the table and waits until it can be used. Somebody else may be making it at the same time.
    async fn create(&self, until: Instant) -> Result<(), LockError> {
        let (attribute, key) = schema().map_err(|error| self.link.unavailable(error))?;
        let created = self.link.send(until, Repeat::Once, async |client: Client| {
            client
                .create_table()
                .table_name(&self.name)
                .billing_mode(BillingMode::PayPerRequest)
                .attribute_definitions(attribute.clone())
                .key_schema(key.clone())
                .send()
                .await
        });
        match created.await {
            Ok(_) => tracing::info!(table = self.name, "made the table of locks in DynamoDB"),
            Err(Failure::Answered(CreateTableError::ResourceInUseException(_))) => {}
            Err(Failure::Answered(other)) => return Err(self.link.refusal(&other)),
            Err(Failure::NoAnswer(error)) => return Err(error),
        }
        timeout_at(until, self.active(until))
            .await
            .unwrap_or_else(|_| Err(self.link.unavailable("its table is not ready yet")))
    }

    async fn active(&self, until: Instant) -> Result<(), LockError> {
        let mut pauses = Backoff::new(LOOKS.0, LOOKS.1);
        while self.status(until).await? != Some(TableStatus::Active) {
            sleep(pauses.next_pause()).await;
        }
        Ok(())
    }

    /// `None` when there is no table yet: DynamoDB may know of it a moment later than it said so.
    async fn status(&self, until: Instant) -> Result<Option<TableStatus>, LockError> {
        let described = self.link.send(until, Repeat::Once, async |client: Client| {
            client.describe_table().table_name(&self.name).send().await
        });
        match described.await {
            Ok(described) => Ok(described.table.and_then(|table| table.table_status)),
            Err(Failure::Answered(DescribeTableError::ResourceNotFoundException(_))) => Ok(None),
            Err(Failure::Answered(other)) => Err(self.link.refusal(&other)),
            Err(Failure::NoAnswer(error)) => Err(error),
        }
    }
}

fn is_missing(failure: &Failure<UpdateItemError>) -> bool {
    matches!(
        failure,
        Failure::Answered(UpdateItemError::ResourceNotFoundException(_))
    )
}

/// Items are found by their name, a text.
fn schema() -> Result<(AttributeDefinition, KeySchemaElement), BuildError> {
    let attribute = AttributeDefinition::builder()
        .attribute_name(NAME)
        .attribute_type(ScalarAttributeType::S)
        .build()?;
    let key = KeySchemaElement::builder()
        .attribute_name(NAME)
        .key_type(KeyType::Hash)
        .build()?;
    Ok((attribute, key))
}
