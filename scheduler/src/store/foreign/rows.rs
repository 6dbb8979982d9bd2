//! Rows of another scheduler's database: statements made of lists of columns, and values read by the columns' names.
//!
//! Every number is asked for as `SIGNED` and every text as `CHAR`, so that widths, signs and collations, which differ between
//! releases, make no difference.

use super::asking::ask;
use super::connection::ForeignDatabase;
use super::failure::{failed, unfit};
use crate::domain::xxljob::instant_of;
use crate::store::error::Result;
use chrono_tz::Tz;
use sea_orm::SqlxError;
use sea_orm::sqlx::mysql::{MySql, MySqlRow};
use sea_orm::sqlx::{self, Row as _};

/// Rows of a page at most.
pub const FOREIGN_PAGE_MAX: u32 = 500;

/// Rows of a table that an import takes at most.
pub const FOREIGN_ROWS_MAX: usize = 50_000;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// A whole number.
    Number,
    /// A text.
    Text,
    /// A text, of which so many characters are read at most.
    Cut(usize),
    /// A time on a wall clock.
    Time,
}

/// A table, as a statement reads it.
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, the key `id` among them.
    pub columns: Vec<(&'static str, Holds)>,
}

impl Table {
    /// A page by id: `?` is the id that it begins after, the next one the number of rows.
    pub fn page(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|(name, holds)| holds.expression(name)).collect();
        format!("SELECT {} FROM `{}` WHERE `id` > ? ORDER BY `id` LIMIT ?", columns.join(", "), self.name)
    }
}

impl Holds {
    fn expression(self, name: &str) -> String {
        match self {
            Self::Number => format!("CAST(`{name}` AS SIGNED) AS `{name}`"),
            Self::Text => format!("CAST(`{name}` AS CHAR) AS `{name}`"),
            Self::Cut(chars) => format!("CAST(LEFT(`{name}`, {chars}) AS CHAR) AS `{name}`"),
            Self::Time => format!("DATE_FORMAT(`{name}`, '%Y-%m-%d %H:%i:%s.%f') AS `{name}`"),
        }
    }
}

/// The values of a row by their columns. One that the statement does not ask for, because the release has no such column, is
/// none.
pub struct Values<'a> {
    row: &'a MySqlRow,
    zone: Tz,
}

/// A value, or what the driver says of it.
pub type Read<T> = std::result::Result<T, SqlxError>;

impl Values<'_> {
    fn value<'r, T: sqlx::Type<MySql> + sqlx::Decode<'r, MySql>>(&'r self, column: &str) -> Read<Option<T>> {
        match self.row.try_get(column) {
            Err(SqlxError::ColumnNotFound(_)) => Ok(None),
            value => value,
        }
    }

    /// A number; null is 0.
    pub fn number(&self, column: &str) -> Read<i64> {
        Ok(self.value(column)?.unwrap_or(0))
    }

    /// A text; null is empty.
    pub fn text(&self, column: &str) -> Read<String> {
        Ok(self.given(column)?.unwrap_or_default())
    }

    /// A text; `None` for null, and where there is no such column.
    pub fn given(&self, column: &str) -> Read<Option<String>> {
        self.value(column)
    }

    /// A time as epoch ms.
    pub fn time(&self, column: &str) -> Read<Option<i64>> {
        Ok(self.given(column)?.and_then(|local| instant_of(&local, self.zone)))
    }
}

impl ForeignDatabase {
    /// A page of a table.
    pub(super) async fn page<T>(
        &mut self,
        action: &'static str,
        table: &Table,
        (after, limit): (i64, u32),
        zone: Tz,
        read: impl Fn(&Values<'_>) -> Read<T>,
    ) -> Result<Vec<T>> {
        let rows = ask(&mut self.connection, &self.address, action, table.page(), &[after, limit.into()]).await?;
        let read = rows.iter().map(|row| read(&Values { row, zone })).collect::<Read<Vec<T>>>();
        read.map_err(|error| failed(action, &self.address, error))
    }

    /// A whole table, page by page.
    pub(super) async fn all<T>(
        &mut self,
        action: &'static str,
        table: &Table,
        zone: Tz,
        read: impl Fn(&Values<'_>) -> Read<T>,
    ) -> Result<Vec<T>> {
        let (mut rows, mut after) = (Vec::new(), 0);
        loop {
            let with_id = |values: &Values<'_>| Ok((values.number("id")?, read(values)?));
            let page = self.page(action, table, (after, FOREIGN_PAGE_MAX), zone, with_id).await?;
            let is_last = page.len() < FOREIGN_PAGE_MAX as usize;
            after = page.last().map_or(after, |(id, _)| *id);
            rows.extend(page.into_iter().map(|(_, row)| row));
            if rows.len() > FOREIGN_ROWS_MAX {
                let why =
                    format!("`{}` has more than {FOREIGN_ROWS_MAX} rows, which an import does not take", table.name);
                return Err(unfit(action, &self.address, &why));
            }
            if is_last {
                return Ok(rows);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_asks_for_each_column_as_what_it_holds() {
        let columns = vec![("id", Holds::Number), ("a", Holds::Text), ("b", Holds::Cut(9)), ("c", Holds::Time)];
        let expected = "SELECT CAST(`id` AS SIGNED) AS `id`, CAST(`a` AS CHAR) AS `a`, CAST(LEFT(`b`, 9) AS CHAR) AS `b`, \
                        DATE_FORMAT(`c`, '%Y-%m-%d %H:%i:%s.%f') AS `c` FROM `t` WHERE `id` > ? ORDER BY `id` LIMIT ?";
        assert_eq!(Table { name: "t", columns }.page(), expected);
    }
}
