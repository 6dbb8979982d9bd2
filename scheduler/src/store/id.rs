//! Ids in rows: each is a BIGINT.

use crate::domain::id::{
    AppId, BackfillId, CalendarId, ExecutorId, GrantId, LogId, NodeId, RoleId, TaskId, TenantId, TokenId, UserId,
    WindowId, id_types,
};
use sea_orm::sea_query::{ArrayType, ColumnType, Nullable, ValueType, ValueTypeErr};
use sea_orm::{ActiveValue, ColIdx, DbErr, IntoActiveValue, QueryResult, TryFromU64, TryGetError, TryGetable, Value};

macro_rules! stored {
    ($($(#[$attr:meta])* $name:ident)*) => {$(
        impl From<$name> for Value {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl TryGetable for $name {
            fn try_get_by<I: ColIdx>(row: &QueryResult, at: I) -> Result<Self, TryGetError> {
                i64::try_get_by(row, at).map(Self)
            }
        }

        impl ValueType for $name {
            fn try_from(value: Value) -> Result<Self, ValueTypeErr> {
                <i64 as ValueType>::try_from(value).map(Self)
            }

            fn type_name() -> String {
                stringify!($name).to_owned()
            }

            fn array_type() -> ArrayType {
                ArrayType::BigInt
            }

            fn column_type() -> ColumnType {
                ColumnType::BigInteger
            }
        }

        impl Nullable for $name {
            fn null() -> Value {
                i64::null()
            }
        }

        impl IntoActiveValue<$name> for $name {
            fn into_active_value(self) -> ActiveValue<$name> {
                ActiveValue::Set(self)
            }
        }

        impl TryFromU64 for $name {
            fn try_from_u64(number: u64) -> Result<Self, DbErr> {
                i64::try_from_u64(number).map(Self)
            }
        }
    )*};
}

id_types!(stored);
