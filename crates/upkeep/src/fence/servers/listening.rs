//! Processes that hold a file, and the TCP ports they listen on, from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process;

use super::Found;
use crate::fence::Holders;
use crate::holders::{self, Coverage};
use crate::locks::KernelLock;
use crate::open::FileState;

/// A listening socket of a process that holds the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Server {
    /// Where to connect to.
    pub(super) address: SocketAddr,
}

/// Looks through every process that this user may see, and at the locks of those it may not.
pub(super) fn find(database: &Path) -> Found {
    let Ok(found) = holders::of(database) else {
        return Found { holders: Holders::Unknown, servers: Vec::new(), has_hidden: true };
    };
    let mut servers = BTreeSet::new();
    let mut has_hidden = found.holders.is_empty();
    for holder in &found.holders {
        match addresses(holder.pid) {
            Ok(found) => servers.extend(found.into_iter().map(|address| Server { address })),
            Err(_) => has_hidden = true,
        }
    }
    let holders = match found.coverage {
        _ if !found.holders.is_empty() => Holders::Others,
        Coverage::Complete => Holders::Nobody,
        Coverage::Partial { .. } => holders_by_locks(database),
        Coverage::Unknown => Holders::Unknown,
    };
    Found { holders, servers: servers.into_iter().collect(), has_hidden }
}

/// Another user's process hides its descriptors, but not its locks, and an attached connection has one all the time: on the database
/// in rollback mode, on the log's index in write-ahead mode (sqlite.org/walformat.html, section 2.3).
fn holders_by_locks(database: &Path) -> Holders {
    let mut index = database.as_os_str().to_owned();
    index.push("-shm");
    let mut files = Vec::new();
    for path in [database, Path::new(&index)] {
        match FileState::of(path) {
            Ok(state) => files.extend(state.map(|state| state.id)),
            Err(_) => return Holders::Unknown,
        }
    }
    if !Path::new("/proc/locks").exists() {
        return Holders::Unknown;
    }
    let own = process::id();
    let is_held =
        KernelLock::all().iter().any(|lock| lock.pid != own && files.iter().any(|file| lock.is_on(*file)));
    if is_held { Holders::Others } else { Holders::Nobody }
}

/// The addresses that process `pid` listens on.
fn addresses(pid: u32) -> io::Result<Vec<SocketAddr>> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    if fs::read_link(process.join("ns/net"))? != fs::read_link("/proc/self/ns/net")? {
        return Err(io::Error::other("another network namespace"));
    }
    let mut sockets = BTreeSet::new();
    for descriptor in fs::read_dir(process.join("fd"))? {
        let Ok(target) = fs::read_link(descriptor?.path()) else { continue };
        let inode = target.to_str().and_then(|text| text.strip_prefix("socket:[")?.strip_suffix(']'));
        sockets.extend(inode.and_then(|digits| digits.parse::<u64>().ok()));
    }
    let mut found = Vec::new();
    for table in ["net/tcp", "net/tcp6"] {
        // A kernel without IPv6 has no second table.
        let text = fs::read_to_string(process.join(table)).unwrap_or_default();
        found.extend(
            text.lines()
                .skip(1)
                .filter_map(parse_listening)
                .filter_map(|(address, inode)| sockets.contains(&inode).then_some(address)),
        );
    }
    Ok(found)
}

/// One line of `/proc/net/tcp` in state LISTEN: local address and inode (proc(5)).
fn parse_listening(line: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (local, state) = (fields.nth(1)?, fields.nth(1)?);
    if state != "0A" {
        return None;
    }
    let inode = fields.nth(5)?.parse().ok()?;
    let (address, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some((SocketAddr::new(reachable(parse_address(address)?), port), inode))
}

/// The kernel prints each 32-bit word of an address as a number in host order.
fn parse_address(digits: &str) -> Option<IpAddr> {
    let word = |text: &str| u32::from_str_radix(text, 16).map(u32::to_ne_bytes).ok();
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(digits)?).into()),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(digits.get(at * 8..at * 8 + 8)?)?);
            }
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// A server on every address is asked on the loopback one.
fn reachable(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, |v4| reachable(v4.into())),
        IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_socket_table_is_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12345 1 0 100 0 0 10 0";
        assert_eq!(parse_listening(line), Some(("127.0.0.1:8080".parse().unwrap(), 12345)));
        assert_eq!(parse_listening(&line.replace(" 0A ", " 01 ")), None, "a connection does not listen");
        let every = line.replace("0100007F", "00000000");
        assert_eq!(parse_listening(&every).unwrap().0, "127.0.0.1:8080".parse().unwrap());
        let v6 = line.replace("0100007F", "00000000000000000000000001000000");
        assert_eq!(parse_listening(&v6).unwrap().0, "[::1]:8080".parse().unwrap());
        assert_eq!(parse_listening("sl local_address"), None);
    }

    #[test]
    fn own_listeners_are_found_by_their_descriptors() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let found = addresses(process::id()).unwrap();
        assert!(found.contains(&listener.local_addr().unwrap()), "{found:?}");
    }
}
