//! Files into and out of containers, as the engine takes and gives them: a tar stream. Only what these two uses need:
//! plain files with short names are written, the first plain file is read. Pure.

/// Owner and group of every entry: the user of our containers.
const USER: u32 = 10001;
const BLOCK: usize = 512;
/// Longest name that fits the first field.
const MAX_NAME: usize = 100;

/// A file that cannot be packed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a staged file: 1 to 100 characters without `/`, and not `.` or `..`")]
pub(super) struct BadName(pub(super) String);

/// Packs files, each readable and, for `secret` ones, by their owner alone.
pub(super) fn pack<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    mode: u32,
) -> Result<Vec<u8>, BadName> {
    let mut out = Vec::new();
    for (name, content) in files {
        let plain = !name.is_empty()
            && name.len() <= MAX_NAME
            && name != "."
            && name != ".."
            && !name.contains(['/', '\0']);
        if !plain {
            return Err(BadName(name.to_owned()));
        }
        out.extend_from_slice(&header(name, content.len(), mode));
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

/// Longest first part of a path that does not fit the first field.
const MAX_PREFIX: usize = 155;

/// The head of a file of a folder, by its path with `/` between the parts. Its content follows, then [`padding`].
pub(super) fn folder_header(path: &str, size: u64) -> Result<[u8; BLOCK], BadName> {
    let bad = || BadName(path.to_owned());
    let size = usize::try_from(size).map_err(|_| bad())?;
    if path.len() <= MAX_NAME {
        return Ok(header(path, size, 0o444));
    }
    // Cut at the last `/` that leaves a name that fits.
    let cut = path
        .char_indices()
        .filter(|(at, c)| *c == '/' && path.len() - at - 1 <= MAX_NAME && *at <= MAX_PREFIX)
        .map(|(at, _)| at)
        .next()
        .ok_or_else(bad)?;
    let mut block = header(&path[cut + 1..], size, 0o444);
    block[345..345 + cut].copy_from_slice(&path.as_bytes()[..cut]);
    sum(&mut block);
    Ok(block)
}

/// What follows a content of so many bytes.
pub(super) fn padding(size: u64) -> Vec<u8> {
    let over = usize::try_from(size % BLOCK as u64).unwrap_or(0);
    vec![0; if over == 0 { 0 } else { BLOCK - over }]
}

/// What follows the last file.
pub(super) fn folder_end() -> Vec<u8> {
    vec![0; 2 * BLOCK]
}

fn sum(block: &mut [u8; BLOCK]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn header(name: &str, size: usize, mode: u32) -> [u8; BLOCK] {
    let mut block = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}\0").as_bytes());
    put(108, format!("{USER:07o}\0").as_bytes());
    put(116, format!("{USER:07o}\0").as_bytes());
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, format!("{:011o}\0", 0).as_bytes());
    put(156, b"0");
    put(257, b"ustar\x0000");
    sum(&mut block);
    block
}

/// The content of the first plain file of a stream.
pub(super) fn first_file(stream: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        let block = stream.get(at..at + BLOCK)?;
        let size = octal(block.get(124..136)?)?;
        let content = at + BLOCK;
        match block.get(156)? {
            b'0' | 0 if size > 0 || block[0] != 0 => {
                return stream.get(content..content.checked_add(size)?);
            }
            // The end.
            0 => return None,
            _ => at = content.checked_add(size.checked_next_multiple_of(BLOCK)?)?,
        }
    }
}

fn octal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?;
    let digits = text.trim_matches(['\0', ' ']);
    if digits.is_empty() {
        return Some(0);
    }
    usize::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_packed_is_what_tar_unpacks() {
        let packed = pack([("manifest.json", &b"{}"[..]), ("b", &[7; 600][..])], 0o400).unwrap();
        assert_eq!(first_file(&packed), Some(&b"{}"[..]));
        let mut tar = Command::new("tar")
            .args(["--list", "--verbose", "--numeric-owner"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        tar.stdin.take().unwrap().write_all(&packed).unwrap();
        let listed = tar.wait_with_output().unwrap();
        assert!(listed.status.success());
        let listed = String::from_utf8(listed.stdout).unwrap();
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(lines.len(), 2, "{listed}");
        for (line, size, name) in [
            (lines[0], " 2 ", "manifest.json"),
            (lines[1], " 600 ", " b"),
        ] {
            assert!(
                line.starts_with("-r-------- 10001/10001")
                    && line.contains(size)
                    && line.ends_with(name),
                "{line}"
            );
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let long = "x".repeat(101);
        for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", &long] {
            assert_eq!(
                pack([(name, &b""[..])], 0o444),
                Err(BadName(name.to_owned()))
            );
        }
    }

    #[test]
    fn a_cut_or_odd_stream_gives_nothing() {
        let packed = pack([("a", &[1; 700][..])], 0o444).unwrap();
        for end in [0, 100, BLOCK, BLOCK + 699] {
            assert_eq!(first_file(&packed[..end]), None, "{end}");
        }
        assert_eq!(first_file(&[0; 4 * BLOCK]), None);
        assert_eq!(first_file(&[0xff; 4 * BLOCK]), None);
    }
}
