//! A read-only mapping of an open file, the second of the two modules that may use `unsafe`: a mapping is memory that
//! the file system owns. Pages are faulted in through [`Mapped::populate`] first, which reports a disk error as an error
//! where a plain read of the page would be a SIGBUS.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;

use memmap2::Mmap;

/// A file's bytes as the page cache has them. Nobody may shorten the file while it is mapped; published checkpoints are
/// never written again (control-plane 11), and loaders never write.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps the whole of `file`.
    ///
    /// # Errors
    /// When the system refuses the mapping.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the mapping is private and read-only. Bytes changed by somebody else would be read as other numbers,
        // never as other types: only plain integers are read from it.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self(map))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads `range` in from the disk. Systems without the call fault pages in as they are touched instead.
    ///
    /// # Errors
    /// When the disk cannot be read.
    pub(crate) fn populate(&self, range: &Range<usize>) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            // EINVAL: a kernel before 5.14, which does not know the call.
            const INVALID: i32 = 22;
            if range.is_empty() {
                return Ok(());
            }
            match self
                .0
                .advise_range(memmap2::Advice::PopulateRead, range.start, range.len())
            {
                Err(error) if error.raw_os_error() == Some(INVALID) => Ok(()),
                result => result,
            }
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = range;
            Ok(())
        }
    }

    /// Gives the memory of whole pages inside `range` back; they are read again when touched. A hint: errors are ignored.
    pub(crate) fn release(&self, range: &Range<usize>) {
        #[cfg(target_os = "linux")]
        {
            const PAGE: usize = 4096;
            let (start, end) = (range.start.next_multiple_of(PAGE), range.end / PAGE * PAGE);
            if start < end {
                // SAFETY: the mapping is backed by a file and was never written, so dropped pages come back with the
                // same content.
                let _ = unsafe {
                    self.0.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        start,
                        end - start,
                    )
                };
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = range;
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn released_pages_come_back_with_their_content() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..100_000u32).map(|i| (i % 251) as u8).collect();
        file.write_all(&content).unwrap();
        let map = Mapped::new(&file).unwrap();
        map.populate(&(5..99_999)).unwrap();
        assert_eq!(map.bytes(), content);
        map.release(&(0..100_000));
        assert_eq!(map.bytes(), content);
    }
}
