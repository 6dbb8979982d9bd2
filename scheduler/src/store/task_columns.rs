//! The columns of a task's definition, made of the list of its fields: how each is read and written goes by its type.

use super::Result;
use super::row::{Column, Read};
use super::values::{clean, to_json, to_word};
use crate::domain::choice::Enumerated;
use crate::domain::task::{TaskSpec, task_fields};
use sea_orm::{QueryResult, Value};
use serde::Serialize;

/// How a field is written.
trait Written {
    /// As the database has it.
    fn write(&self, action: &'static str) -> Result<Value>;
}

impl Written for String {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok(clean(self).into())
    }
}

impl Written for i32 {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok((*self).into())
    }
}

impl Written for i64 {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok((*self).into())
    }
}

impl Written for bool {
    fn write(&self, _: &'static str) -> Result<Value> {
        Ok(i32::from(*self).into())
    }
}

impl<T: Serialize> Written for Vec<T> {
    fn write(&self, action: &'static str) -> Result<Value> {
        Ok(to_json(action, self)?.into())
    }
}

impl<T: Enumerated> Written for T {
    fn write(&self, action: &'static str) -> Result<Value> {
        Ok(to_word(action, self)?.into())
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
        /// Their names, in the order of [`spec_values`].
        pub const SPEC_COLUMNS: &[&str] = &[$($(stringify!($field)),*),*];

        /// The values of a definition.
        pub fn spec_values(action: &'static str, spec: &TaskSpec) -> Result<Vec<Value>> {
            Ok(vec![$($(spec.$field.write(action)?),*),*])
        }

        /// The definition, with defaults where the row is older than a column; what stands elsewhere is as by default.
        pub fn read_spec(row: &QueryResult) -> Read<TaskSpec> {
            let mut spec = TaskSpec::default();
            $($(
                if let Some(value) = Column::read(row, stringify!($field))? {
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
