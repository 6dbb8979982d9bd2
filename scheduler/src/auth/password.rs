//! Passwords: argon2id, off the HTTP threads, a few at a time.

use crate::domain::FieldRefusal;
use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use carillon_protocol::sign::random_hex;
use tokio::sync::Semaphore;

/// Hashes at once at most: each takes 19 MiB and about 30 ms of a core.
const AT_ONCE_MAX: usize = 2;

/// Shortest password, characters.
pub const CHARS_MIN: usize = 12;

/// Longest password, characters.
pub const CHARS_MAX: usize = 256;

/// Passwords that are tried first everywhere, and are long enough.
const KNOWN: [&str; 8] = [
    "password1234",
    "123456789012",
    "qwertyuiopas",
    "administrator",
    "carillon1234",
    "letmeinletmein",
    "passwordpassword",
    "changemechangeme",
];

/// A fault of hashing: out of memory, or a hash that is none.
#[derive(Debug, thiserror::Error)]
#[error("the password cannot be hashed or checked: {0}")]
pub struct PasswordError(String);

/// Hashes and checks passwords.
#[derive(Debug)]
pub struct Passwords {
    places: Semaphore,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { places: Semaphore::new(AT_ONCE_MAX) }
    }
}

impl Passwords {
    /// The hash of a password, with a salt of its own (PHC string).
    pub async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let password = password.to_owned();
        let hash = move || Argon2::default().hash_password(password.as_bytes()).map(|hash| hash.to_string());
        self.run(hash).await?.map_err(|error| PasswordError(error.to_string()))
    }

    /// Whether it is the password of that hash. Without a hash (no such user, or one without a
    /// password) it takes as long, so that callers do not learn which users exist.
    pub async fn matches(&self, password: &str, hash: &str) -> Result<bool, PasswordError> {
        if hash.is_empty() {
            return self.hash(password).await.map(|_| false);
        }
        let (password, hash) = (password.to_owned(), hash.to_owned());
        let check = move || {
            let hash = PasswordHash::new(&hash)?;
            Ok(Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        };
        let checked: Result<bool, argon2::password_hash::phc::Error> = self.run(check).await?;
        checked.map_err(|error| PasswordError(error.to_string()))
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, PasswordError> {
        let wrong = |error: &dyn std::fmt::Display| PasswordError(error.to_string());
        let _place = self.places.acquire().await.map_err(|error| wrong(&error))?;
        tokio::task::spawn_blocking(work).await.map_err(|error| wrong(&error))
    }
}

/// Whether a password may be chosen: its length is what counts (NIST SP 800-63B), and that it is not the
/// first that an attacker would try.
///
/// # Errors
/// What is wrong with it.
pub fn check_password(password: &str, user: &str) -> Result<(), FieldRefusal> {
    let chars = password.chars().count();
    if !(CHARS_MIN..=CHARS_MAX).contains(&chars) {
        return Err(FieldRefusal::WrongLength { least: CHARS_MIN as i64, most: CHARS_MAX as i64 });
    }
    let lower = password.to_lowercase();
    if lower.contains(&user.to_lowercase()) && !user.is_empty() {
        return Err(FieldRefusal::PasswordHasName);
    }
    let distinct: std::collections::BTreeSet<char> = lower.chars().collect();
    if distinct.len() < 5 || KNOWN.iter().any(|known| lower.starts_with(known)) {
        return Err(FieldRefusal::PasswordGuessable);
    }
    Ok(())
}

/// A random password that can be read aloud and typed: four groups of five, 80 bits.
pub fn random_password() -> Result<String, getrandom::Error> {
    let digits = random_hex::<10>()?;
    Ok(digits.as_bytes().chunks(5).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_its_own_hash_and_no_other() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct horse battery").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert!(passwords.matches("correct horse battery", &hash).await.unwrap());
        assert!(!passwords.matches("correct horse batterz", &hash).await.unwrap());
        assert!(!passwords.matches("", "").await.unwrap());
        assert_ne!(passwords.hash("correct horse battery").await.unwrap(), hash);
        assert!(passwords.matches("x", "no hash").await.is_err());
    }

    #[test]
    fn guessable_passwords_are_refused() {
        for bad in ["short", "aaaaaaaaaaaaaaaa", "ann-the-admin-1", "Password1234!", "passwordpassword", ""] {
            assert!(check_password(bad, "ann").is_err(), "{bad}");
        }
        for good in ["correct horse battery", "正确的马电池订书钉还有别的词"] {
            assert_eq!(check_password(good, "ann"), Ok(()), "{good}");
        }
        assert_eq!(check_password(&random_password().unwrap(), "admin"), Ok(()));
    }
}
