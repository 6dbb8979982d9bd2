//! Bodies of responses from outside, which may be as long as whoever sends them likes.

use reqwest::Response;

/// Why a body was not read.
#[derive(Debug)]
pub enum Unread {
    /// It has more bytes than allowed.
    TooLong,
    /// The connection broke.
    Broken(reqwest::Error),
}

/// Reads the rest of a response, at most `bytes_max` bytes.
///
/// # Errors
/// It is longer, or does not arrive whole.
pub async fn read_within(response: &mut Response, bytes_max: usize) -> Result<Vec<u8>, Unread> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Unread::Broken)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(Unread::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
