//! Which process has made a connection on this machine.

use std::path::PathBuf;

/// The socket of a connection between these ports: its number, as `/proc` has it.
pub fn socket(from: u16, to: u16) -> Option<u64> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let port = |place: Option<&str>| u16::from_str_radix(place?.rsplit_once(':')?.1, 16).ok();
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let ends = (port(fields.next()), port(fields.next()));
        let number = fields.nth(6)?.parse().ok()?;
        // One that nobody has any more has no number.
        (ends == (Some(from), Some(to)) && number != 0).then_some(number)
    })
}

/// Whether this process has the socket.
pub fn has(pid: u32, socket: u64) -> bool {
    let name = PathBuf::from(format!("socket:[{socket}]"));
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_link(file.path()).ok()).any(|target| target == name)
}

#[cfg(test)]
mod tests {
    use super::{has, socket};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_belongs_to_the_process_that_has_made_it() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = listener.local_addr().unwrap().port();
        let stream = TcpStream::connect(("127.0.0.1", to)).unwrap();
        let from = stream.local_addr().unwrap().port();
        let found = socket(from, to).unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own, others) = (has(std::process::id(), found), has(other.id(), found));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(own && !others);
        assert_eq!(socket(to, to), None);
    }
}
