//! The columns of a task's definition, made of the list of its fields: how each is read and written goes by its type.

use super::Result;
use super::values::{clean, json, to_json, to_word, word};
use crate::domain::choice::Enumerated;
use crate::domain::task::{TaskSpec, task_fields};
use sea_orm::{DbErr, QueryResult, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

type Read<T> = std::result::Result<T, DbErr>;

/// What stands in a column.
trait Column: Sized {
    /// As the database has it.
    fn write(&self, action: &'static str) -> Result<Value>;

    /// Out of a row; none where the row is older than the column.
    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>>;
}

impl Column for String {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok(clean(self).into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        row.try_get_by_index(at)
    }
}

impl Column for i32 {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        row.try_get_by_index(at)
    }
}

impl Column for i64 {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok((*self).into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        row.try_get_by_index(at)
    }
}

impl Column for bool {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok(i32::from(*self).into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        Ok(row.try_get_by_index::<Option<i32>>(at)?.map(|flag| flag != 0))
    }
}

impl<T: Serialize + DeserializeOwned> Column for Vec<T> {
    fn write(&self, action: &'static str) -> Result<Value> {
        Ok(to_json(action, self)?.into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        row.try_get_by_index::<Option<String>>(at)?.map(|_| json(row, at)).transpose()
    }
}

impl<T: Enumerated> Column for T {
    fn write(&self, action: &'static str) -> Result<Value> {
        Ok(to_word(action, self)?.into())
    }

    fn read(row: &QueryResult, at: usize) -> Read<Option<Self>> {
        word(row, at).map(Some)
    }
}

macro_rules! columns {
    (
        columns { $($group:literal: $(
            $(#[$attr:meta])* $field:ident: $type:ty = $default:expr,
            $says:literal, $allowed:expr, $example:literal, $use_when:literal;
        )*)* }
        elsewhere { $($rest:tt)* }
    ) => {
        /// Their names, in the order of [`spec_values`] and [`read_spec`].
        pub const SPEC_COLUMNS: &[&str] = &[$($(stringify!($field)),*),*];

        /// The values of a definition.
        pub fn spec_values(action: &'static str, spec: &TaskSpec) -> Result<Vec<Value>> {
            Ok(vec![$($(spec.$field.write(action)?),*),*])
        }

        /// The definition in the columns from `from` on; what stands elsewhere is as by default.
        pub fn read_spec(row: &QueryResult, from: usize) -> Read<TaskSpec> {
            let mut spec = TaskSpec::default();
            let mut columns = from..;
            $($(
                if let Some(at) = columns.next()
                    && let Some(value) = Column::read(row, at)?
                {
                    spec.$field = value;
                }
            )*)*
            Ok(spec)
        }
    };
}

task_fields!(columns);

/// The columns, each after `prefix`.
pub fn spec_list(prefix: &str) -> String {
    SPEC_COLUMNS.iter().map(|name| format!("{prefix}{name}")).collect::<Vec<_>>().join(", ")
}

/// `name = {first}, … ` for an UPDATE.
pub fn spec_set(first: usize) -> String {
    let set = SPEC_COLUMNS.iter().enumerate().map(|(at, name)| format!("{name} = {{{}}}", first + at));
    set.collect::<Vec<_>>().join(", ")
}

/// `{first}, {first + 1}, …` for `count` values.
pub fn markers(first: usize, count: usize) -> String {
    (first..first + count).map(|at| format!("{{{at}}}")).collect::<Vec<_>>().join(", ")
}
