//! Passwords: argon2id, off the HTTP threads, a few at a time, in memory that is used again: allocated each time on another
//! thread, 19 MiB would stay behind in each thread's arena.

use crate::domain::FieldRefusal;
use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{ARGON2ID_IDENT, Argon2, Block, Params, Version};
use carillon_protocol::sign::random_hex;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Hashes at once at most: each takes 19 MiB, which the process keeps, and about 30 ms of a core.
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
pub struct Passwords {
    places: Semaphore,
    /// As many as were ever in use at once.
    buffers: Arc<Mutex<Vec<Vec<Block>>>>,
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords").finish_non_exhaustive()
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self { places: Semaphore::new(AT_ONCE_MAX), buffers: Arc::default() }
    }
}

impl Passwords {
    /// The hash of a password, with a salt of its own (PHC string).
    pub async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let password = password.to_owned();
        self.run(move |memory| hash_in(memory, &password)).await
    }

    /// Whether it is the password of that hash. Without a hash (no such user, or one without a
    /// password) it takes as long, so that callers do not learn which users exist.
    pub async fn matches(&self, password: &str, hash: &str) -> Result<bool, PasswordError> {
        if hash.is_empty() {
            return self.hash(password).await.map(|_| false);
        }
        let (password, hash) = (password.to_owned(), hash.to_owned());
        self.run(move |memory| is_hash_of(memory, &password, &hash)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Vec<Block>) -> Result<T, PasswordError> + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _place = self.places.acquire().await.map_err(wrong)?;
        let buffers = Arc::clone(&self.buffers);
        let work = move || {
            let mut memory = buffers.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
            let done = work(&mut memory);
            buffers.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
            done
        };
        tokio::task::spawn_blocking(work).await.map_err(wrong)?
    }
}

#[allow(clippy::needless_pass_by_value)] // an argument of `map_err`
fn wrong(error: impl std::fmt::Display) -> PasswordError {
    PasswordError(error.to_string())
}

fn hash_in(memory: &mut Vec<Block>, password: &str) -> Result<String, PasswordError> {
    let (params, salt) = (Params::default(), Salt::generate());
    let hash = PasswordHash {
        algorithm: ARGON2ID_IDENT,
        version: Some(Version::default().into()),
        params: ParamsString::try_from(&params).map_err(wrong)?,
        salt: Some(salt),
        hash: Some(digest(memory, password, &salt, params)?),
    };
    Ok(hash.to_string())
}

fn is_hash_of(memory: &mut Vec<Block>, password: &str, hash: &str) -> Result<bool, PasswordError> {
    let hash = PasswordHash::new(hash).map_err(wrong)?;
    let (Some(salt), Some(expected)) = (hash.salt, hash.hash) else { return Err(wrong("the hash is not complete")) };
    let is_ours = hash.algorithm == ARGON2ID_IDENT && hash.version == Some(Version::default().into());
    if !is_ours {
        return Err(wrong("the hash is of another algorithm than argon2id"));
    }
    let params = Params::try_from(&hash).map_err(wrong)?;
    // Compares in constant time.
    Ok(digest(memory, password, &salt, params)? == expected)
}

fn digest(memory: &mut Vec<Block>, password: &str, salt: &Salt, params: Params) -> Result<Output, PasswordError> {
    memory.resize(params.block_count().max(memory.len()), Block::default());
    let mut out = [0; Params::DEFAULT_OUTPUT_LEN];
    Argon2::from(params).hash_password_into_with_memory(password.as_bytes(), salt, &mut out, memory).map_err(wrong)?;
    Output::new(&out).map_err(wrong)
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

    #[tokio::test]
    async fn memory_does_not_grow_with_the_number_of_sign_ins() {
        let passwords = Arc::new(Passwords::default());
        let tries: Vec<_> = (0..12)
            .map(|at| {
                let passwords = Arc::clone(&passwords);
                tokio::spawn(async move { passwords.hash(&format!("a wrong password {at}")).await.unwrap() })
            })
            .collect();
        for hash in tries {
            hash.await.unwrap();
        }
        assert!((1..=AT_ONCE_MAX).contains(&passwords.buffers.lock().unwrap().len()));
    }

    #[tokio::test]
    async fn a_hash_of_the_library_itself_is_understood() {
        // The reference implementation's: `echo -n password | argon2 somesalt -id -t 2 -k 65536 -p 1`.
        let hash = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(Passwords::default().matches("password", hash).await.unwrap());
        assert!(!Passwords::default().matches("Password", hash).await.unwrap());
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
