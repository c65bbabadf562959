//! Open files: each connection is one, and many systems start a process with room for 1024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a server of ours can use: its connections, its files and some room.
const WANTED: u64 = 8192;

/// Raises the soft limit of open files as far as the hard limit lets it, up to what a server needs. The limit in force.
#[must_use]
pub fn raise_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    match current {
        Some(now) if now < wanted => match setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                maximum,
            },
        ) {
            Ok(()) => wanted,
            Err(_) => now,
        },
        Some(now) => now,
        None => u64::MAX,
    }
}
