//! Who may do what: the keys of executors, the people and programs that use the management API.

mod address;
mod authenticator;
mod caller;
mod keys;
mod oidc;
mod password;
mod secret;
mod sign_on;
mod throttle;
mod verifier;

pub use address::{AddressRule, is_node_at};
pub use authenticator::{Authenticator, Denied, FIRST_USER, LoginContext, SessionTimes, SignedIn};
pub use caller::{Caller, Recheck};
pub use keys::{KeyRing, SECRET_CHARS_MIN};
pub use oidc::Provider;
pub use password::{check_password, random_password};
pub use secret::{SESSION_PREFIX, TOKEN_PREFIX, csrf_of, hash_of, new_secret};
pub use sign_on::{Identity, Pending, SignOnContext, SignOnSettings};
pub use throttle::{Throttle, network_of};
pub use verifier::{Claims, MessageClass, Refusal, SignedHead, Verifier};
