//! Input other than bodies: queries, ids, revisions. Invalid input yields a problem document.

use super::problem::Problem;
use super::refusal::RequestRefusal;
use crate::domain::{FieldError, Refusal};
use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpRequest, web};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use std::future::{Ready, ready};
use std::ops::RangeInclusive;
use std::str::FromStr;
use utoipa::{IntoParams, ToSchema};

/// Items in one page at most.
pub const PAGE_MAX: u64 = 500;

/// Items in one page, when the caller does not say.
pub const PAGE_DEFAULT: u64 = 50;

/// Longest search text, characters.
const SEARCH_CHARS_MAX: usize = 100;

/// Refuses a search text that is empty or too long.
///
/// # Errors
/// It does not have 1 to 100 characters.
pub fn refuse_wrong_search(part: Option<&str>) -> Result<(), Problem> {
    if part.is_some_and(|part| !(1..=SEARCH_CHARS_MAX).contains(&part.chars().count())) {
        return Err(FieldError::length("search", 1, SEARCH_CHARS_MAX).into());
    }
    Ok(())
}

/// For `deserialize_with`: a field of a merge patch. Absent is `None`; `null`, which would remove a field, is refused.
///
/// # Errors
/// The value is not a `T`.
pub fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// A query, as `T` reads it.
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequest for Query<T> {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let read = web::Query::<T>::from_query(request.query_string());
        ready(read.map(|query| Self(query.into_inner())).map_err(wrong_query))
    }
}

#[allow(clippy::needless_pass_by_value)] // of `map_err`
fn wrong_query(error: impl ToString) -> Problem {
    RequestRefusal::WrongQuery { detail: error.to_string() }.into()
}

/// One of a parameter's allowed words, or the refusal.
pub fn known_word<T>(
    parameter: &str,
    given: &str,
    known: Option<T>,
    allowed: impl FnOnce() -> String,
) -> Result<T, Problem> {
    let wrong =
        || RequestRefusal::WrongWord { parameter: parameter.to_owned(), given: given.to_owned(), allowed: allowed() };
    known.ok_or_else(|| wrong().into())
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T: ToSchema> {
    /// The items.
    pub items: Vec<T>,
    /// Cursor of the next page; null on the last page.
    pub next: Option<String>,
}

impl<T: ToSchema> Page<T> {
    /// A page of at most `limit` items; `cursor` makes `next` from the last one.
    pub fn new(items: Vec<T>, limit: u64, cursor: impl Fn(&T) -> String) -> Self {
        let next = items.last().filter(|_| items.len() as u64 == limit).map(cursor);
        Self { items, next }
    }

    /// A complete list, without a next page.
    pub fn whole(items: Vec<T>) -> Self {
        Self { items, next: None }
    }
}

/// Paging of a list that is ordered by id and has no filters.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct AfterQuery {
    /// `next` of the previous page.
    pub after: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u64>,
}

/// Paging of a list that is ordered newest first.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub struct BeforeQuery {
    /// `next` of the previous page.
    pub before: Option<String>,
    /// Page size, 1 to 500.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<u64>,
}

/// The size of a page. A size of 0, or one that is too large, is refused rather than silently corrected.
pub fn limit(wanted: Option<u64>) -> Result<u64, Problem> {
    let size = wanted.unwrap_or(PAGE_DEFAULT);
    if (1..=PAGE_MAX).contains(&size) {
        return Ok(size);
    }
    Err(FieldError::range("limit", 1, PAGE_MAX as i64).into())
}

/// An id out of a path or a query.
pub fn parse_id<Id: FromStr>(field: &str, text: &str) -> Result<Id, Problem> {
    let wrong = || RequestRefusal::WrongId { parameter: field.to_owned(), given: text.chars().take(40).collect() };
    text.parse().map_err(|_| wrong().into())
}

/// An id out of a query that may lack it.
pub fn parse_optional_id<Id: FromStr>(field: &str, text: Option<&String>) -> Result<Option<Id>, Problem> {
    text.map(|text| parse_id(field, text)).transpose()
}

/// A cursor of several numbers, as the previous page returned it.
pub fn parse_cursor(field: &str, text: &str, numbers: RangeInclusive<usize>) -> Result<Vec<i64>, Problem> {
    let cursor: Result<Vec<i64>, _> = text.split('-').map(str::parse).collect();
    let cursor = cursor.ok().filter(|cursor| numbers.contains(&cursor.len()));
    cursor.ok_or_else(|| bad_cursor(field))
}

/// The refusal of an invalid cursor.
pub fn bad_cursor(field: &str) -> Problem {
    RequestRefusal::WrongCursor { parameter: field.to_owned() }.into()
}

/// The revision in `If-Match`; `None` without the header.
pub fn if_match(request: &HttpRequest) -> Result<Option<i64>, Problem> {
    let Some(value) = request.headers().get(header::IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" {
        return Ok(None);
    }
    let revision = text.trim_start_matches("W/").trim_matches('"').parse();
    revision.map(Some).map_err(|_| RequestRefusal::WrongIfMatch.into())
}

/// Refuses to overwrite what another caller has changed since it was read.
pub fn refuse_stale(given: Option<i64>, current: i64) -> Result<(), Problem> {
    match given {
        Some(given) if given != current => Err(Refusal::StaleRevision { given, current }.into()),
        _ => Ok(()),
    }
}

/// The header that names a revision.
pub fn etag(revision: i64) -> (header::HeaderName, String) {
    (header::ETAG, format!("\"{revision}\""))
}
