//! Ids as types: one for each kind of thing, so that none is taken for another. All are 64 bits, made by
//! [`IdSource`](super::IdSource) (a node's is its number).

use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter, Result};
use std::num::ParseIntError;
use std::str::FromStr;

/// Hands the list of ids to a macro, so that `store/` can teach all of them to the database.
macro_rules! id_types {
    ($with:ident) => {
        $with! {
            /// Of a tenant.
            TenantId
            /// Of an app.
            AppId
            /// Of a task.
            TaskId
            /// Of a task log: one run.
            LogId
            /// Of an executor's process.
            ExecutorId
            /// A node's number.
            NodeId
            /// Of a calendar.
            CalendarId
            /// Of a backfill.
            BackfillId
            /// Of a maintenance window.
            WindowId
            /// Of a person's account.
            UserId
            /// Of a role.
            RoleId
            /// Of a role granted to a person.
            GrantId
            /// Of an API token.
            TokenId
        }
    };
}

macro_rules! define {
    ($($(#[$attr:meta])* $name:ident)*) => {$(
        $(#[$attr])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// Stands in a row where there is none.
            pub const NONE: Self = Self(0);

            /// Whether there is none.
            #[must_use]
            pub const fn is_none(self) -> bool {
                self.0 == 0
            }
        }

        impl From<i64> for $name {
            fn from(number: i64) -> Self {
                Self(number)
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl Display for $name {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> std::result::Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }
    )*};
}

id_types!(define);

pub(crate) use id_types;
