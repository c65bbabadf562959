//! Who listens on a port of this machine, as far as the kernel tells this user: the socket's inode by `/proc/net/tcp`, its
//! process by the files that processes have open. What belongs to another user has no name here.

use std::path::Path;

/// `TCP_LISTEN` of the kernel.
const LISTENING: &str = "0A";
/// Longest name of a process that is shown, in characters; the kernel cuts at 15.
const MAX_NAME: usize = 32;

/// `process 4711 (docker-proxy)`, or another user's, where something listens.
pub(crate) fn holder(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .find_map(|table| listener(&table, port))?;
    Some(process(inode).unwrap_or_else(|| "a process of another user".to_owned()))
}

/// Inode of the socket that listens on a port of this machine, or of all addresses.
fn listener(table: &str, port: u16) -> Option<u64> {
    let ending = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let cells: Vec<_> = line.split_whitespace().collect();
        let (local, state, inode) = (cells.get(1)?, cells.get(3)?, cells.get(9)?);
        let is_it = local.ends_with(&ending) && *state == LISTENING;
        is_it.then(|| inode.parse().ok()).flatten()
    })
}

/// The process that has a socket open.
fn process(inode: u64) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| has_open(*pid, &wanted))
        .map(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name: String = name.trim().chars().take(MAX_NAME).collect();
            format!("process {pid} ({name})")
        })
}

fn has_open(pid: u32, wanted: &str) -> bool {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"));
    files
        .into_iter()
        .flatten()
        .flatten()
        .any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target == Path::new(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2221 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4242 1
   1: 0100007F:2222 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 4243 1
";

    #[test]
    fn only_who_listens_holds_a_port() {
        assert_eq!(listener(TABLE, 8737), Some(4242));
        assert_eq!(listener(TABLE, 8738), None, "a connection is no listener");
        assert_eq!(listener("", 8737), None);
    }

    #[test]
    fn this_process_is_found_by_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = holder(port).unwrap();
        assert!(
            found.starts_with(&format!("process {} (", std::process::id())),
            "{found}"
        );
    }
}
