//! Bodies, bounded in size and time.

use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::domain::FieldError;
use crate::domain::refusal::unreadable;
use actix_web::web::{Bytes, BytesMut, Payload};
use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;
use serde::{Deserializer, Serialize};
use serde_json::{Map, Value};
use std::fmt::Display;
use std::time::Duration;

/// Largest body of the management API, bytes.
pub const BYTES_MAX: usize = 256 * 1024;

/// How long a body may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Why a body was not read.
pub enum BodyError {
    /// Larger than the limit.
    TooLarge,
    /// Not complete in time.
    TooSlow,
    /// The connection broke.
    Broken(String),
}

/// Reads at most `limit` bytes.
pub async fn read(payload: Payload, limit: usize) -> Result<Bytes, BodyError> {
    read_counting(payload, limit, |_| Ok(())).await
}

/// The same; `take` is told how many bytes there will be with the next part, and may refuse them.
pub async fn read_counting<P, B, E>(
    mut payload: P,
    limit: usize,
    mut take: impl FnMut(usize) -> Result<(), E>,
) -> Result<Bytes, E>
where
    P: Stream<Item = Result<Bytes, B>> + Unpin,
    B: Display,
    E: From<BodyError>,
{
    let collect = async {
        let mut body = BytesMut::new();
        while let Some(chunk) = payload.next().await {
            let chunk = chunk.map_err(|error| BodyError::Broken(error.to_string()))?;
            if body.len() + chunk.len() > limit {
                return Err(BodyError::TooLarge.into());
            }
            take(body.len() + chunk.len())?;
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    };
    tokio::time::timeout(TIMEOUT, collect).await.map_err(|_| BodyError::TooSlow)?
}

/// Reads a JSON body of the management API.
pub async fn json<T: DeserializeOwned>(payload: Payload) -> Result<T, Problem> {
    json_within(payload, BYTES_MAX).await
}

/// Reads a JSON body of at most `limit` bytes.
pub async fn json_within<T: DeserializeOwned>(payload: Payload, limit: usize) -> Result<T, Problem> {
    let body = read(payload, limit).await.map_err(|error| match error {
        BodyError::TooLarge => Problem::from(RequestRefusal::TooLarge { most_bytes: limit as i64 }),
        BodyError::TooSlow => RequestRefusal::TooSlow.into(),
        BodyError::Broken(detail) => RequestRefusal::BrokenBody { detail }.into(),
    })?;
    let body: &[u8] = if body.is_empty() { b"{}" } else { &body };
    read_as(&mut serde_json::Deserializer::from_slice(body))
}

/// Reads a JSON body that replaces a whole: a `T` has defaults, but the body must name every field, so that a client that
/// does not know one cannot erase it.
pub async fn whole<T: DeserializeOwned + Serialize + Default>(payload: Payload) -> Result<T, Problem> {
    let given: Value = json(payload).await?;
    let read = read_as(given.clone())?;
    let all = serde_json::to_value(T::default()).unwrap_or_default();
    let is_missing = |name: &&String| given.as_object().is_some_and(|given| !given.contains_key(*name));
    let missing: Vec<FieldError> =
        all.as_object().into_iter().flat_map(Map::keys).filter(is_missing).map(FieldError::required).collect();
    if missing.is_empty() { Ok(read) } else { Err(Problem::fields(missing)) }
}

fn read_as<'de, T: DeserializeOwned, D: Deserializer<'de, Error = serde_json::Error>>(from: D) -> Result<T, Problem> {
    serde_path_to_error::deserialize(from).map_err(|error| {
        let message = error.inner().to_string();
        match error.path().to_string().as_str() {
            "." => match named(&message) {
                Some(field) => FieldError::new(field, unreadable(&message)).into(),
                None => RequestRefusal::WrongBody { detail: message }.into(),
            },
            field => FieldError::new(field, unreadable(&message)).into(),
        }
    })
}

/// The field that a message names, when the path does not lead to it.
fn named(message: &str) -> Option<String> {
    let kinds = ["unknown field `", "missing field `"];
    let rest = kinds.iter().find_map(|kind| message.strip_prefix(kind))?;
    rest.split('`').next().map(str::to_owned)
}
