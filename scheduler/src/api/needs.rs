//! What a caller of an operation must have.

use crate::domain::access::Permission;

/// What a caller must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// To be somebody, even if he must choose another password first.
    Anybody,
    /// A session: it is about his own account, which a token must not get hold of.
    Session,
    /// This permission, in some tenant or on the platform; where, the handler asks for.
    Permission(Permission),
}

impl Needs {
    /// Its word in the document: `public`, `signed_in`, `session`, or the permission's.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "public",
            Self::Anybody => "signed_in",
            Self::Session => "session",
            Self::Permission(permission) => permission.as_str(),
        }
    }
}

impl From<Permission> for Needs {
    fn from(permission: Permission) -> Self {
        Self::Permission(permission)
    }
}
