//! Who may do what: the keys of executors and the token of the management API.

mod address;
mod keys;
mod token;

pub use address::AddressRule;
pub use keys::{KeyRing, Refusal, Signed, SignedRequest, Verifier};
pub use token::ApiToken;
