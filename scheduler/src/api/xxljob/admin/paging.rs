//! Which part of a list is wanted.

use super::asked::Asked;
use super::reply::{Paging, Refused};
use crate::api::input::PAGE_MAX;

/// Items in one page, when the caller does not say.
const PAGE_DEFAULT: i64 = 10;

/// Items that may come before a page.
pub const OFFSET_MAX: i64 = 100_000;

/// How pages are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// `pageNum`, `pageSize`: portals.
    Numbered,
    /// `start`, `length`: forms up to 3.2.0.
    Length,
    /// `offset`, `pagesize`: forms from 3.3.0 on.
    Offset,
}

impl Paging {
    /// As it was asked for.
    pub fn read(asked: &Asked, pages: Pages) -> Result<Self, Refused> {
        let (from, size) = match pages {
            Pages::Numbered => ("pageNum", "pageSize"),
            Pages::Length => ("start", "length"),
            Pages::Offset => ("offset", "pagesize"),
        };
        let wanted = asked.number(size)?.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX as i64).contains(&wanted) {
            return Err(Refused::field(size, format!("1 to {PAGE_MAX} are allowed")));
        }
        let offset = match pages {
            Pages::Numbered => {
                let number = asked.number(from)?.unwrap_or(1);
                if number < 1 {
                    return Err(Refused::field(from, "pages are counted from 1"));
                }
                (number - 1).saturating_mul(wanted)
            }
            Pages::Length | Pages::Offset => asked.number(from)?.unwrap_or(0),
        };
        if !(0..=OFFSET_MAX).contains(&offset) {
            return Err(Refused::field(from, format!("it must lie within the first {OFFSET_MAX}: narrow the search")));
        }
        Ok(Self { offset: offset.unsigned_abs(), size: wanted.unsigned_abs() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(pages: Pages, fields: serde_json::Value) -> Option<(u64, u64)> {
        Paging::read(&Asked::of(fields), pages).ok().map(|Paging { offset, size }| (offset, size))
    }

    #[test]
    fn pages_have_three_names() {
        assert_eq!(read(Pages::Numbered, json!({ "pageNum": "3", "pageSize": 20 })), Some((40, 20)));
        assert_eq!(read(Pages::Length, json!({ "start": "3", "length": 20 })), Some((3, 20)));
        assert_eq!(read(Pages::Offset, json!({ "offset": 3, "pagesize": "20" })), Some((3, 20)));
        for pages in [Pages::Numbered, Pages::Length, Pages::Offset] {
            assert_eq!(read(pages, json!({})), Some((0, 10)));
        }
    }

    #[test]
    fn a_page_has_bounds() {
        for wrong in [
            json!({ "pageNum": 0 }),
            json!({ "pageSize": 0 }),
            json!({ "pageSize": 501 }),
            json!({ "pageSize": "ten" }),
            json!({ "pageNum": i64::MAX, "pageSize": 500 }),
        ] {
            assert_eq!(read(Pages::Numbered, wrong.clone()), None, "{wrong}");
        }
        assert_eq!(read(Pages::Length, json!({ "start": -1 })), None);
        assert_eq!(read(Pages::Length, json!({ "length": -1 })), None);
    }
}
