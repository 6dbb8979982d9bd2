//! Secrets that the database keeps, encrypted under a key of the settings: AES-256-GCM (NIST SP 800-38D), each with a
//! random nonce of 96 bits and the place that it belongs to as associated data, so that no one can move it elsewhere.
//!
//! What is stored is `enc:<name of the key>:<base64 of nonce, ciphertext and tag>`. Under which key the cluster encrypts
//! stands in the database, in [`SETTING`], as a known text encrypted under it: nodes that do not have it do not start.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::{ExposeSecret as _, SecretString};
use std::fmt;

/// What an encrypted secret begins with.
const PREFIX: &str = "enc:";

/// The name under which the table `setting` says which key the cluster encrypts under.
pub(super) const SETTING: &str = "encryption_key";

/// The text that stands there, encrypted.
const KNOWN_TEXT: &str = "carillon";

/// Longest name of a key, characters.
const NAME_CHARS_MAX: usize = 16;

/// Bytes of a key.
const KEY_BYTES: usize = 32;

/// A text of the database that cannot be decrypted, or encrypted: why, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncryptionError {
    /// The settings lack the key.
    #[error("encryption.keys lacks the key `{0}`, under which the database's secrets are encrypted; add it")]
    NoSuchKey(String),
    /// It is another key, or the text was changed or moved.
    #[error("what is encrypted under `{0}` cannot be decrypted with the key of that name in encryption.keys")]
    NotDecrypted(String),
    /// There is no randomness.
    #[error("no random bytes: {0}")]
    NoRandomness(String),
}

/// The keys of the settings.
#[derive(Default)]
pub struct EncryptionKeys(Vec<(String, LessSafeKey)>);

impl fmt::Debug for EncryptionKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl EncryptionKeys {
    /// Reads `encryption.keys`: each `name:base64 of 32 bytes`.
    ///
    /// # Errors
    /// What is wrong with one of them; its secret is not in the text.
    pub fn parse(texts: &[SecretString]) -> Result<Self, String> {
        let mut keys: Vec<(String, LessSafeKey)> = Vec::new();
        for (at, text) in texts.iter().enumerate() {
            let place = format!("encryption.keys, entry {}", at + 1);
            let Some((name, key)) = text.expose_secret().split_once(':') else {
                return Err(format!("{place}: it must be `name:key`, the key being 32 random bytes in base64"));
            };
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_word) {
                return Err(format!("{place}: its name must have 1 to {NAME_CHARS_MAX} letters a-z, digits or `-`"));
            }
            if keys.iter().any(|(known, _)| known == name) {
                return Err(format!("{place}: there are two keys `{name}`"));
            }
            let bytes = STANDARD.decode(key.trim()).ok().filter(|bytes| bytes.len() == KEY_BYTES);
            let key = bytes.and_then(|bytes| UnboundKey::new(&AES_256_GCM, &bytes).ok());
            let Some(key) = key else {
                return Err(format!(
                    "{place}: the key `{name}` must be {KEY_BYTES} bytes in base64 (openssl rand -base64 32)"
                ));
            };
            keys.push((name.to_owned(), LessSafeKey::new(key)));
        }
        Ok(Self(keys))
    }

    /// The name of the first key: the one to encrypt under from the next rotation on.
    pub(super) fn first(&self) -> Option<&str> {
        self.0.first().map(|(name, _)| name.as_str())
    }

    /// Encrypts a text that belongs to `place`, under the key of that name.
    pub(super) fn encrypt(&self, name: &str, place: &str, text: &str) -> Result<String, EncryptionError> {
        let key = self.find(name)?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| EncryptionError::NoRandomness(error.to_string()))?;
        let mut bytes = text.as_bytes().to_vec();
        let sealed = key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut bytes);
        sealed.map_err(|_| EncryptionError::NotDecrypted(name.to_owned()))?;
        Ok(format!("{PREFIX}{name}:{}", STANDARD.encode([&nonce[..], &bytes].concat())))
    }

    /// The text behind what is stored; what is not encrypted is the text itself.
    pub(super) fn decrypt(&self, place: &str, stored: &str) -> Result<String, EncryptionError> {
        let Some((name, encoded)) = key_of(stored) else { return Ok(stored.to_owned()) };
        let key = self.find(name)?;
        let plain = || {
            let mut bytes = STANDARD.decode(encoded).ok()?;
            let (nonce, sealed) = bytes.split_at_mut_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let text = key.open_in_place(nonce, Aad::from(place), sealed).ok()?;
            String::from_utf8(text.to_vec()).ok()
        };
        plain().ok_or_else(|| EncryptionError::NotDecrypted(name.to_owned()))
    }

    /// The known text, encrypted: what [`SETTING`] says.
    pub(super) fn marker(&self, name: &str) -> Result<String, EncryptionError> {
        self.encrypt(name, SETTING, KNOWN_TEXT)
    }

    /// The name of the key that a marker speaks of; an error if it is not the one in the settings.
    pub(super) fn check_marker(&self, marker: &str) -> Result<String, EncryptionError> {
        let name = key_of(marker).map_or("", |(name, _)| name);
        match self.decrypt(SETTING, marker)?.as_str() {
            KNOWN_TEXT => Ok(name.to_owned()),
            _ => Err(EncryptionError::NotDecrypted(name.to_owned())),
        }
    }

    fn find(&self, name: &str) -> Result<&LessSafeKey, EncryptionError> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, key)| key).ok_or_else(|| EncryptionError::NoSuchKey(name.to_owned()))
    }
}

/// The name of the key, and the rest; `None` when a text is not encrypted.
fn key_of(stored: &str) -> Option<(&str, &str)> {
    stored.strip_prefix(PREFIX)?.split_once(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(texts: &[&str]) -> Result<EncryptionKeys, String> {
        EncryptionKeys::parse(&texts.iter().map(|text| SecretString::from(*text)).collect::<Vec<_>>())
    }

    fn key(name: &str, byte: u8) -> String {
        format!("{name}:{}", STANDARD.encode([byte; KEY_BYTES]))
    }

    #[test]
    fn a_text_comes_back_under_its_own_key_and_in_its_own_place_only() {
        let both = keys(&[&key("new", 1), &key("old", 2)]).unwrap();
        assert_eq!(both.first(), Some("new"));
        for name in ["new", "old"] {
            let stored = both.encrypt(name, "app_key:a", "a secret, ä").unwrap();
            assert!(stored.starts_with(&format!("enc:{name}:")) && !stored.contains("secret"), "{stored}");
            assert_ne!(stored, both.encrypt(name, "app_key:a", "a secret, ä").unwrap(), "a nonce of its own");
            assert_eq!(both.decrypt("app_key:a", &stored).unwrap(), "a secret, ä");
            let moved = both.decrypt("app_key:b", &stored);
            assert_eq!(moved, Err(EncryptionError::NotDecrypted(name.to_owned())));
            let cut = both.decrypt("app_key:a", &stored[..stored.len() - 4]);
            assert_eq!(cut, Err(EncryptionError::NotDecrypted(name.to_owned())));
        }
        let stored = both.encrypt("new", "app_key:a", "x").unwrap();
        assert_eq!(keys(&[]).unwrap().decrypt("app_key:a", &stored), Err(EncryptionError::NoSuchKey("new".to_owned())));
        let other = keys(&[&key("new", 3)]).unwrap();
        assert_eq!(other.decrypt("app_key:a", &stored), Err(EncryptionError::NotDecrypted("new".to_owned())));
        assert_eq!(both.decrypt("app_key:a", "plain").unwrap(), "plain");
        assert_eq!(both.check_marker(&both.marker("old").unwrap()).unwrap(), "old");
        assert!(other.check_marker(&both.marker("new").unwrap()).is_err());
        assert!(both.check_marker("carillon").is_ok_and(|name| name.is_empty()));
    }

    #[test]
    fn keys_are_named_and_whole_and_never_shown() {
        let short = format!("k:{}", STANDARD.encode([1; 16]));
        let twice = [&*key("k", 1), &*key("k", 2)];
        for (texts, complaint) in [
            (&["abc"][..], "`name:key`"),
            (&["Key:AAAA"], "letters a-z"),
            (&["k:not base64"], "32 bytes in base64"),
            (&[short.as_str()], "32 bytes in base64"),
            (&twice, "two keys `k`"),
        ] {
            let error = keys(texts).unwrap_err();
            assert!(error.contains(complaint) && error.starts_with("encryption.keys, entry"), "{error}");
            assert!(!texts.iter().any(|text| error.contains(text)), "{error}");
        }
        let shown = format!("{:?}", keys(&[&key("k", 1)]).unwrap());
        assert_eq!(shown, "[\"k\"]");
    }
}
