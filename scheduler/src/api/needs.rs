//! What a caller of an operation must have.

use crate::domain::access::Permission;

/// What a caller must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// To be signed in, even if the user must choose a new password first.
    Anybody,
    /// A session: the operation concerns the caller's own account, which a token must not take over.
    Session,
    /// This permission, in some tenant or on the platform; the handler checks where.
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
