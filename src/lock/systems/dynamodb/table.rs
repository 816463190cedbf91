//! The table of all locks: one item for each key, and one that says which table this is.
//!
//! It is made by the first request that misses it, with billing per request, by however many replicas at once. It has
//! no expiry of its own (`TimeToLive`): that would delete items, and their counters with them, long after they were due.
//! Every change is one conditional `UpdateItem`, which DynamoDB carries out alone and on a majority of its copies.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use aws_sdk_dynamodb::{
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
use tokio::{
    sync::Mutex,
    time::{sleep, timeout_at},
};

use super::link::{Failure, Limit, Link, Repeat};
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
    made: AtomicU64,
    making: Mutex<()>,
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
    pub(super) fn new(link: Link, name: impl Into<String>) -> Self {
        Self {
            link,
            name: name.into(),
            made: AtomicU64::new(0),
            making: Mutex::new(()),
        }
    }

    /// How often this process had to make it.
    pub(super) fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    /// Makes one conditional change to an item, and the table when there is none. `describe` adds the change and its
    /// condition to the request.
    pub(super) async fn change(
        &self,
        item: String,
        limit: Limit,
        repeat: Repeat,
        describe: impl Fn(UpdateItemFluentBuilder) -> UpdateItemFluentBuilder,
    ) -> Result<Change, LockError> {
        let made = self.made();
        let answer = self.update(&item, limit, repeat, &describe).await;
        if !matches!(&answer, Err(failure) if is_missing(failure)) {
            return self.read(answer);
        }
        self.create(made, limit).await?;
        self.read(self.update(&item, limit, repeat, &describe).await)
    }

    async fn update(
        &self,
        item: &str,
        limit: Limit,
        repeat: Repeat,
        describe: &impl Fn(UpdateItemFluentBuilder) -> UpdateItemFluentBuilder,
    ) -> Result<Item, Failure<UpdateItemError>> {
        let updated = self.link.send(limit, repeat, |client| {
            let update = client
                .update_item()
                .table_name(&self.name)
                .key(NAME, AttributeValue::S(item.to_owned()))
                .return_values(ReturnValue::AllNew)
                .return_values_on_condition_check_failure(
                    ReturnValuesOnConditionCheckFailure::AllOld,
                );
            describe(update).send()
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

    /// Makes the table and waits until it can be used. In this process, one task does so for all that missed it when
    /// `made` tables had been made; other processes may be making it at the same time.
    async fn create(&self, made: u64, limit: Limit) -> Result<(), LockError> {
        let making = async {
            let _alone = self.making.lock().await;
            if self.made() == made {
                self.create_now(limit).await?;
                self.made.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let made = timeout_at(limit.until, making).await;
        made.unwrap_or_else(|_| Err(self.link.no_answer(limit)))
    }

    async fn create_now(&self, limit: Limit) -> Result<(), LockError> {
        let (attribute, key) = schema().map_err(|error| self.link.unavailable(error))?;
        let created = self.link.send(limit, Repeat::Once, |client| {
            client
                .create_table()
                .table_name(&self.name)
                .billing_mode(BillingMode::PayPerRequest)
                .attribute_definitions(attribute.clone())
                .key_schema(key.clone())
                .send()
        });
        match created.await {
            Ok(_) => tracing::info!(table = self.name, "made the table of locks in DynamoDB"),
            Err(Failure::Answered(CreateTableError::ResourceInUseException(_))) => {}
            Err(Failure::Answered(other)) => return Err(self.link.refusal(&other)),
            Err(Failure::NoAnswer(error)) => return Err(error),
        }
        let mut pauses = Backoff::new(LOOKS.0, LOOKS.1);
        while self.status(limit).await? != Some(TableStatus::Active) {
            sleep(pauses.next_pause()).await;
        }
        Ok(())
    }

    /// `None` when there is no table yet: DynamoDB may know of it a moment later than it said so.
    async fn status(&self, limit: Limit) -> Result<Option<TableStatus>, LockError> {
        let described = self.link.send(limit, Repeat::Once, |client| {
            client.describe_table().table_name(&self.name).send()
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
