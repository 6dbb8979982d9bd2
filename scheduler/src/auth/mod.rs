//! Who may do what: the keys of executors and the token of the management API.

mod address;
mod keys;
mod token;

pub use address::{CheckedResolver, check_address};
pub use keys::{KeyRing, Refusal, SignedRequest, Verifier};
pub use token::ApiToken;
