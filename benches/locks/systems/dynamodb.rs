//! One DynamoDB Local, beside two bare UpdateItems of such an item.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ReturnValue,
    ScalarAttributeType,
};
use aws_sdk_dynamodb::{Client, Config};
use doublebook::lock::systems;
use doublebook::stack::found::{self, Known};
use doublebook::stack::{DynamoDbServer, Launcher};

use super::{AT_MOST, Bare, Lock, Once, Server, System, layered, owner};

pub struct DynamoDb;

/// The table of the bare requests, and the attribute that names its only item.
const TABLE: &str = "bare";
const NAME: &str = "name";

const TAKE: &str = "SET owner_id = :owner, last_token = if_not_exists(last_token, :none) + :one";
const FREE: &str = "REMOVE owner_id";
const IS_MINE: &str = "owner_id = :owner";

#[async_trait(?Send)]
impl System for DynamoDb {
    fn name(&self) -> &'static str {
        "dynamodb"
    }

    async fn start(&self, launcher: &Launcher, folder: &Path) -> Result<Server> {
        let server = DynamoDbServer::start(launcher, folder).await?;
        Ok(Server::new(server.url(), server))
    }

    /// A running one does not tell.
    async fn version(&self, _: &str) -> Result<String> {
        let java = found::on_path("java").context("java is not on PATH")?;
        let mut asked = tokio::process::Command::new(java);
        asked.arg("-jar").arg(Known::DynamoDb.required()?);
        let told = asked.arg("-version").output().await?;
        ensure!(told.status.success(), "no version: {}", told.status);
        let version = String::from_utf8(told.stdout)?;
        Ok(format!("DynamoDB Local {}", version.trim()))
    }

    async fn open(&self, address: &str) -> Result<Arc<dyn Lock>> {
        Ok(layered(systems::DynamoDb::local(address)?))
    }

    async fn bare(&self, address: &str) -> Result<Vec<Bare>> {
        let client = connect(address);
        make_table(&client).await?;
        Ok(vec![Bare {
            what: "two UpdateItems",
            at_most: Some(AT_MOST),
            once: two_updates(client),
        }])
    }
}

/// A DynamoDB Local believes any region and any keys.
fn connect(address: &str) -> Client {
    let keys = Credentials::new("doublebook", "doublebook", None, None, "bench");
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("local"))
        .credentials_provider(keys)
        .endpoint_url(address)
        .retry_config(RetryConfig::disabled())
        .http_client(aws_smithy_http_client::Builder::new().build_http());
    Client::from_conf(config.build())
}

async fn make_table(client: &Client) -> Result<()> {
    let name = AttributeDefinition::builder()
        .attribute_name(NAME)
        .attribute_type(ScalarAttributeType::S);
    let key = KeySchemaElement::builder()
        .attribute_name(NAME)
        .key_type(KeyType::Hash);
    client
        .create_table()
        .table_name(TABLE)
        .billing_mode(BillingMode::PayPerRequest)
        .attribute_definitions(name.build()?)
        .key_schema(key.build()?)
        .send()
        .await?;
    Ok(())
}

fn two_updates(client: Client) -> Once {
    Box::new(move || {
        let client = client.clone();
        Box::pin(async move {
            let owner = AttributeValue::S(owner());
            update(&client, TAKE)
                .expression_attribute_values(":owner", owner.clone())
                .expression_attribute_values(":none", AttributeValue::N("0".to_owned()))
                .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
                .return_values(ReturnValue::AllNew)
                .send()
                .await?;
            update(&client, FREE)
                .condition_expression(IS_MINE)
                .expression_attribute_values(":owner", owner)
                .send()
                .await?;
            Ok(())
        })
    })
}

fn update(client: &Client, expression: &str) -> UpdateItemFluentBuilder {
    client
        .update_item()
        .table_name(TABLE)
        .key(NAME, AttributeValue::S("a".to_owned()))
        .update_expression(expression)
}
