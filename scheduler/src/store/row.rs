//! Reading rows: a column by its type, a tuple in the order of its columns, a struct by their names.

use crate::domain::choice::Enumerated;
use crate::domain::executor::NameSet;
use crate::domain::id::{
    AppId, BackfillId, CalendarId, ExecutorId, GrantId, LogId, NodeId, RoleId, TaskId, TenantId, TokenId, UserId,
    WindowId, id_types,
};
use crate::domain::{Reason, Status, Trigger};
use sea_orm::{ColIdx, DbErr, QueryResult};
use serde::de::DeserializeOwned;
use std::collections::HashSet;
use std::hash::Hash;

/// What reading answers.
pub type Read<T> = std::result::Result<T, DbErr>;

/// What one column holds.
pub trait Column: Sized {
    /// By name or by place; none where it is NULL.
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>>;
}

/// What one row holds.
pub trait FromRow: Sized {
    /// Reads it.
    fn from_row(row: &QueryResult) -> Read<Self>;
}

/// A column that is never NULL, or an optional one.
pub fn column<T: Column, I: ColIdx>(row: &QueryResult, at: I) -> Read<T> {
    T::read(row, at)?.ok_or_else(|| DbErr::Type(format!("the column {at:?} has no value")))
}

impl<T: Column> Column for Option<T> {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        T::read(row, at).map(Some)
    }
}

macro_rules! plain {
    ($($(#[$doc:meta])* $type:ident)*) => {$(
        impl Column for $type {
            fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
                row.try_get_by(at)
            }
        }
    )*};
}

plain!(i32 i64 String);
id_types!(plain);

/// A number that is 0 for no.
impl Column for bool {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        Ok(i32::read(row, at)?.map(|flag| flag != 0))
    }
}

impl Column for Status {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        let unknown = |number| DbErr::Type(format!("task_log.status {number} is none of ours"));
        let status = |number| i16::try_from(number).ok().and_then(Self::from_number).ok_or_else(|| unknown(number));
        i32::read(row, at)?.map(status).transpose()
    }
}

macro_rules! parsed {
    ($($type:ident)*) => {$(
        impl Column for $type {
            fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
                Ok(String::read(row, at)?.map(|word| Self::parse(&word)))
            }
        }
    )*};
}

parsed!(Reason Trigger);

/// Stored as JSON.
impl<T: DeserializeOwned> Column for Vec<T> {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        String::read(row, at)?.map(|text| of_json(&text)).transpose()
    }
}

/// Stored as JSON.
impl<T: DeserializeOwned + Eq + Hash> Column for HashSet<T> {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        String::read(row, at)?.map(|text| of_json(&text)).transpose()
    }
}

impl Column for NameSet {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        Ok(HashSet::read(row, at)?.map(Self::from))
    }
}

fn of_json<T: DeserializeOwned>(text: &str) -> Read<T> {
    serde_json::from_str(text).map_err(|error| DbErr::Type(error.to_string()))
}

/// A `snake_case` enum stored as its word.
impl<T: Enumerated> Column for T {
    fn read<I: ColIdx>(row: &QueryResult, at: I) -> Read<Option<Self>> {
        let word = |text| serde_json::from_value(serde_json::Value::String(text));
        String::read(row, at)?.map(word).transpose().map_err(|error| DbErr::Type(error.to_string()))
    }
}

impl<T: Column> FromRow for T {
    fn from_row(row: &QueryResult) -> Read<Self> {
        column(row, 0)
    }
}

/// Of a field: empty where the column is NULL.
pub fn or_default<T: Column + Default>(name: &'static str) -> impl Fn(&QueryResult) -> Read<T> {
    move |row| Ok(T::read(row, name)?.unwrap_or_default())
}

/// Of a field that no column has.
pub fn absent<T: Default>(_: &QueryResult) -> Read<T> {
    Ok(T::default())
}

macro_rules! tuples {
    ($($($type:ident $at:literal)*;)*) => {$(
        impl<$($type: Column),*> FromRow for ($($type,)*) {
            fn from_row(row: &QueryResult) -> Read<Self> {
                Ok(($(column::<$type, usize>(row, $at)?,)*))
            }
        }
    )*};
}

tuples! {
    A 0 B 1;
    A 0 B 1 C 2;
    A 0 B 1 C 2 D 3;
    A 0 B 1 C 2 D 3 E 4;
}

/// Reads structs: each field from the column of its name, from another (`field: "column"`), or as a function of the row
/// says (`field = function`).
macro_rules! from_row {
    ($type:ident { $($field:ident $(: $column:literal)? $(= $read:expr)?),* $(,)? }) => {
        impl $crate::store::row::FromRow for $type {
            fn from_row(row: &sea_orm::QueryResult) -> $crate::store::row::Read<Self> {
                Ok(Self { $($field: from_row!(@ row, $field $(: $column)? $(= $read)?)),* })
            }
        }
    };
    (@ $row:ident, $field:ident) => {
        $crate::store::row::column($row, stringify!($field))?
    };
    (@ $row:ident, $field:ident: $column:literal) => {
        $crate::store::row::column($row, $column)?
    };
    (@ $row:ident, $field:ident = $read:expr) => {
        $read($row)?
    };
}

pub(in crate::store) use from_row;
