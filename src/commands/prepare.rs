//! What must be true of the database before the first replica of a run starts.

/// Prepares the database and returns what people should be told, a line each.
pub async fn prepare(_database_url: &str, _redis_url: Option<&str>) -> anyhow::Result<Vec<String>> {
    Ok(Vec::new())
}
