//! The admin, as an executor speaks to it.

use crate::message::Connection;
use serde::Deserialize;
use std::io;
use tokio::net::TcpStream;

/// Where it is.
#[derive(Clone)]
pub struct Admin {
    host: String,
    context: String,
}

#[derive(Deserialize)]
struct Answer {
    code: i32,
}

impl Admin {
    /// At `http://host:port/context`.
    pub fn at(url: &str) -> io::Result<Self> {
        let rest = url.strip_prefix("http://").ok_or_else(|| io::Error::other("FLEET_ADMIN is no http address"))?;
        let (host, context) = rest.split_once('/').unwrap_or((rest, ""));
        let context = if context.is_empty() { String::new() } else { format!("/{}", context.trim_end_matches('/')) };
        Ok(Self { host: host.to_owned(), context })
    }

    /// Tells it something over a connection that is kept; an error unless it was taken.
    pub async fn tell(&self, kept: &mut Option<Connection>, path: &str, token: &str, body: &[u8]) -> io::Result<()> {
        let mut connection = match kept.take() {
            Some(connection) => connection,
            None => Connection::new(TcpStream::connect(&self.host).await?)?,
        };
        let mut message = format!(
            "POST {}/api/{path} HTTP/1.1\r\nhost: {}\r\nXXL-JOB-ACCESS-TOKEN: {token}\r\ncontent-type: application/json;charset=UTF-8\r\n\
             content-length: {}\r\n\r\n",
            self.context,
            self.host,
            body.len()
        )
        .into_bytes();
        message.extend_from_slice(body);
        connection.write(&message).await?;
        let answer = connection.read(false).await?.ok_or_else(|| io::Error::other("no answer"))?;
        let said: Answer = serde_json::from_slice(&answer.body).map_err(io::Error::other)?;
        if answer.status != 200 || said.code != 200 {
            return Err(io::Error::other(format!("status {}, code {}", answer.status, said.code)));
        }
        *kept = Some(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_context_is_kept() {
        let admin = Admin::at("http://127.0.0.1:80/xxl-job-admin/").unwrap();
        assert_eq!((admin.host.as_str(), admin.context.as_str()), ("127.0.0.1:80", "/xxl-job-admin"));
        assert_eq!(Admin::at("http://127.0.0.1:80").unwrap().context, "");
        assert!(Admin::at("127.0.0.1").is_err());
    }
}
