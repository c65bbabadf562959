//! Whether there is room for a checkpoint before its first byte is asked for (control-plane 11, step 3).

use std::io;
use std::path::Path;

/// Kept free beside what is written, in bytes, and 5 % of it.
const RESERVE_BYTES: u64 = 64 << 20;
/// Folders, the manifest, its temporary file and the lock.
const RESERVE_INODES: u64 = 16;

/// Room, in bytes and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// What writing `size` bytes in `files` files needs where `staged` bytes of them have their place already: Σ sizes − bytes
/// staged + 5 % + 64 MiB, files + 16.
pub(crate) const fn needed(size: u64, staged: u64, files: u64) -> Room {
    let left = size.saturating_sub(staged);
    Room {
        bytes: left
            .saturating_add(left.div_ceil(20))
            .saturating_add(RESERVE_BYTES),
        inodes: files.saturating_add(RESERVE_INODES),
    }
}

impl Room {
    pub(crate) const fn holds(self, need: Self) -> bool {
        need.bytes <= self.bytes && need.inodes <= self.inodes
    }
}

/// What is free for a process like this one. File systems without a fixed number of inodes have as many as anybody asks
/// for.
pub(crate) fn free(path: &Path) -> io::Result<Room> {
    let seen = rustix::fs::statvfs(path)?;
    let unbounded = seen.f_files == 0;
    Ok(Room {
        bytes: seen.f_bavail.saturating_mul(seen.f_frsize),
        inodes: if unbounded { u64::MAX } else { seen.f_favail },
    })
}

/// Free and all bytes of the file system.
pub(crate) fn totals(path: &Path) -> io::Result<(u64, u64)> {
    let seen = rustix::fs::statvfs(path)?;
    Ok((
        seen.f_bavail.saturating_mul(seen.f_frsize),
        seen.f_blocks.saturating_mul(seen.f_frsize),
    ))
}

/// Free bytes at a path that may not exist, for messages.
pub(crate) fn free_bytes_near(path: &Path) -> u64 {
    path.ancestors()
        .find_map(|folder| free(folder).ok())
        .map_or(0, |room| room.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn need_is_what_is_missing_with_a_reserve() {
        const MIB: u64 = 1 << 20;
        // size, staged, files -> bytes, inodes
        let rows = [
            (0, 0, 0, 64 * MIB, 16),
            (100 * MIB, 0, 5, 169 * MIB, 21),
            (100 * MIB, 60 * MIB, 5, 106 * MIB, 21),
            (100 * MIB, 100 * MIB, 5, 64 * MIB, 21),
            (100 * MIB, 200 * MIB, 5, 64 * MIB, 21),
            (u64::MAX, 0, u64::MAX, u64::MAX, u64::MAX),
        ];
        for (size, staged, files, bytes, inodes) in rows {
            assert_eq!(
                needed(size, staged, files),
                Room { bytes, inodes },
                "{size} {staged}"
            );
        }
    }

    #[test]
    fn either_can_be_missing() {
        let room = |bytes, inodes| Room { bytes, inodes };
        assert!(room(10, 10).holds(room(10, 10)));
        assert!(!room(9, 10).holds(room(10, 10)));
        assert!(!room(10, 9).holds(room(10, 10)));
    }

    #[test]
    fn a_folder_of_this_machine_has_room() {
        let folder = tempfile::tempdir().unwrap();
        assert!(free(folder.path()).unwrap().bytes > 0);
        let (free, total) = totals(folder.path()).unwrap();
        assert!(free <= total);
        assert!(free_bytes_near(&folder.path().join("a/b")) > 0);
    }
}
