//! Who may do what: the keys of executors, the people and programs that use the management API.

mod address;
mod caller;
mod gate;
mod keys;
#[cfg(feature = "oidc")]
mod oidc;
#[cfg(not(feature = "oidc"))]
#[path = "no_oidc.rs"]
mod oidc;
mod password;
mod secret;
mod sign_on;
mod throttle;
mod verifier;

pub use address::AddressRule;
pub use caller::Caller;
pub use gate::{Denied, FIRST_USER, Gate, SessionTimes, SignedIn, Visit};
pub use keys::KeyRing;
pub use oidc::Provider;
pub use password::{check_password, random_password};
pub use secret::{SESSION_PREFIX, TOKEN_PREFIX, csrf_of, hash_of, new_secret};
pub use sign_on::{Identity, Occasion, Pending, SignOnSettings};
pub use throttle::{Throttle, network_of};
pub use verifier::{Claims, Lane, Refusal, SignedHead, Verifier};
