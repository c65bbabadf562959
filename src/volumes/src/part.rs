//! One file into the staging folder (control-plane 11, steps 4 and 5): gone on with where an earlier run stopped, hashed
//! while it comes, checked, and fetched once more where it is wrong.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use laya::checkpoint::hex;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use sha2::{Digest as _, Sha256};

use crate::TaskError;
use crate::error::SourceFault;
use crate::layout::make_folder;
use crate::request::SourceFile;
use crate::run::Step;
use crate::source::{Opened, Origin};
use crate::watch::Watch;

/// Bytes that are read, written and hashed at a time.
pub(crate) const PIECE: usize = 256 << 10;
/// Bytes after which what was written is sent to the disk.
const FLUSH_BYTES: u64 = 32 << 20;
/// How long small reads are gathered before they are written.
const GATHERING: Duration = Duration::from_millis(250);
/// Pieces that may wait for the hashing thread.
const WAITING: usize = 8;

/// Brings a file into the staging folder, or leaves a part that the next run goes on with.
pub(crate) fn bring(
    origin: &mut dyn Origin,
    file: &SourceFile,
    staging: &Path,
    watch: &Arc<Watch>,
) -> Result<(), TaskError> {
    let path = staging.join(&file.path);
    watch.file(&file.path);
    let mut wrong = None;
    for _ in 0..2 {
        match once(origin, file, &path, watch) {
            Ok(()) => {
                return watch.passed(&Step::Checked {
                    path: file.path.clone(),
                });
            }
            Err(error @ (TaskError::DigestMismatch { .. } | TaskError::SizeMismatch { .. })) => {
                let counted = fs::symlink_metadata(&path).map_or(0, |seen| seen.len());
                remove(&path)?;
                watch.lost(counted.min(file.size));
                wrong = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    // Set in both rounds.
    Err(wrong.unwrap_or(TaskError::Interrupted))
}

fn once(
    origin: &mut dyn Origin,
    file: &SourceFile,
    path: &Path,
    watch: &Arc<Watch>,
) -> Result<(), TaskError> {
    let part = Part::open(path, file.size)?;
    let flushed = part
        .file
        .try_clone()
        .map_err(|source| TaskError::io("make", path, source))?;
    let found = std::thread::scope(|scope| {
        let (pieces, hashed) = sync_channel(WAITING);
        let (empty, spare) = sync_channel(WAITING + 2);
        let (flush, asked) = sync_channel(1);
        let hasher = scope.spawn(move || hash(&hashed, &empty));
        let flusher = scope.spawn(move || keep_flushing(&flushed, &asked));
        let mut filling = Filling {
            part,
            file,
            watch,
            pieces,
            spare,
            flush,
            unflushed: 0,
        };
        let filled = filling.fill(origin);
        watch.hang_up();
        // Ends the other two.
        drop(filling);
        let digest = hasher.join().unwrap_or_default();
        let on_disk = flusher.join().unwrap_or(Ok(()));
        filled?;
        // An error that was told once is not told again by the sync before the publication.
        on_disk.map_err(|source| TaskError::io("sync", path, source))?;
        Ok(digest)
    })?;
    if found == file.sha256 {
        Ok(())
    } else {
        Err(TaskError::DigestMismatch {
            what: file.path.clone(),
            expected: file.sha256.clone(),
            got: found,
        })
    }
}

/// Sends what was written to the disk while more comes, so that the sync before the publication has little left to do.
fn keep_flushing(file: &File, asked: &Receiver<()>) -> io::Result<()> {
    while asked.recv().is_ok() {
        file.sync_data()?;
    }
    Ok(())
}

/// What the hashing thread is told.
enum Piece {
    /// The next bytes.
    Bytes(Vec<u8>),
    /// What came so far is no good.
    StartOver,
}

/// Hashes what comes and gives the emptied pieces back.
fn hash(pieces: &Receiver<Piece>, empty: &SyncSender<Vec<u8>>) -> String {
    let mut hasher = Sha256::new();
    while let Ok(piece) = pieces.recv() {
        match piece {
            Piece::Bytes(bytes) => {
                hasher.update(&bytes);
                // Nobody needs it where the channel is full or closed.
                let _ = empty.try_send(bytes);
            }
            Piece::StartOver => hasher = Sha256::new(),
        }
    }
    hex(&hasher.finalize())
}

struct Filling<'a> {
    part: Part,
    file: &'a SourceFile,
    watch: &'a Arc<Watch>,
    pieces: SyncSender<Piece>,
    spare: Receiver<Vec<u8>>,
    flush: SyncSender<()>,
    unflushed: u64,
}

impl Filling<'_> {
    fn fill(&mut self, origin: &mut dyn Origin) -> Result<(), TaskError> {
        self.hash_what_is_there()?;
        let mut asked_without_range = self.part.length == 0;
        while self.part.length < self.file.size {
            let watch = Arc::clone(self.watch);
            match origin.open(self.file, self.part.length, &watch)? {
                Opened::Body { at, reader } => {
                    if at != self.part.length {
                        self.start_over()?;
                    }
                    return self.receive(reader);
                }
                Opened::Beyond { size } => {
                    if let Some(got) = size.filter(|size| *size != self.file.size) {
                        return Err(self.wrong_size(got));
                    }
                    if asked_without_range {
                        return Err(TaskError::source(
                            SourceFault::NotFound,
                            self.file.path.clone(),
                            "the source answers 416 to a request for the whole file",
                        ));
                    }
                    asked_without_range = true;
                    self.start_over()?;
                }
            }
        }
        Ok(())
    }

    /// A part of an earlier run is hashed from the disk, since nothing says that it is what was written.
    fn hash_what_is_there(&mut self) -> Result<(), TaskError> {
        let mut left = self.part.length;
        self.part.seek(0)?;
        while left > 0 {
            self.watch.check()?;
            let mut piece = self.piece();
            piece.resize(PIECE.min(usize::try_from(left).unwrap_or(PIECE)), 0);
            let read = self.part.file.read(&mut piece);
            let count = read.map_err(|source| TaskError::io("read", &self.part.path, source))?;
            if count == 0 {
                // Somebody cut it while it was read.
                return Err(self.wrong_size(self.part.length - left));
            }
            piece.truncate(count);
            left -= count as u64;
            self.hand_on(Piece::Bytes(piece));
        }
        Ok(())
    }

    fn start_over(&mut self) -> Result<(), TaskError> {
        self.watch.lost(self.part.length);
        self.part.clear(self.file.size)?;
        self.hand_on(Piece::StartOver);
        Ok(())
    }

    fn receive(&mut self, mut reader: Box<dyn Read + '_>) -> Result<(), TaskError> {
        while self.part.length < self.file.size {
            let mut piece = self.piece();
            // One byte more shows a file that is too long.
            let most = (self.file.size - self.part.length).saturating_add(1);
            piece.resize(PIECE.min(usize::try_from(most).unwrap_or(PIECE)), 0);
            let count = self.read(reader.as_mut(), &mut piece)?;
            if count == 0 {
                return Err(self.cut());
            }
            piece.truncate(count);
            self.keep(piece)?;
        }
        // What follows the last byte, where no read has shown it yet.
        let mut one = [0];
        if self.part.length > self.file.size || self.read(reader.as_mut(), &mut one)? > 0 {
            return Err(self.wrong_size(self.file.size + 1));
        }
        Ok(())
    }

    fn read(&self, reader: &mut dyn Read, into: &mut [u8]) -> Result<usize, TaskError> {
        self.watch.check()?;
        let (mut filled, began) = (0, Instant::now());
        // Small reads are gathered, as long as nobody waits for progress.
        while filled < into.len() {
            match reader.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(count) => {
                    self.watch.heard(count as u64);
                    filled += count;
                    if began.elapsed() >= GATHERING {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What came before it is kept; the next read says it again.
                Err(_) if filled > 0 => break,
                Err(error) => {
                    self.watch.check()?;
                    return Err(TaskError::source(
                        SourceFault::Interrupted,
                        self.file.path.clone(),
                        format!(
                            "{error} after {} of {} bytes; the next run goes on from there",
                            self.part.length, self.file.size
                        ),
                    ));
                }
            }
        }
        Ok(filled)
    }

    fn keep(&mut self, piece: Vec<u8>) -> Result<(), TaskError> {
        let count = piece.len() as u64;
        let written = self.part.file.write_all(&piece);
        written.map_err(|source| TaskError::io("write", &self.part.path, source))?;
        self.part.length += count;
        self.unflushed += count;
        // Where it still works on the last one, the next piece asks again.
        if self.unflushed >= FLUSH_BYTES && self.flush.try_send(()).is_ok() {
            self.unflushed = 0;
        }
        self.watch.moved(count);
        self.hand_on(Piece::Bytes(piece));
        self.watch.passed(&Step::Received {
            path: self.file.path.clone(),
            bytes: self.part.length,
        })
    }

    fn piece(&self) -> Vec<u8> {
        self.spare
            .try_recv()
            .unwrap_or_else(|_| Vec::with_capacity(PIECE))
    }

    fn hand_on(&self, piece: Piece) {
        // It ends only after this does.
        let _ = self.pieces.send(piece);
    }

    fn wrong_size(&self, got: u64) -> TaskError {
        TaskError::SizeMismatch {
            what: self.file.path.clone(),
            expected: self.file.size,
            got,
        }
    }

    fn cut(&self) -> TaskError {
        TaskError::source(
            SourceFault::Interrupted,
            self.file.path.clone(),
            format!(
                "the source ended after {} of {} bytes; the next run goes on from there",
                self.part.length, self.file.size
            ),
        )
    }
}

/// A file of the staging folder.
struct Part {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Part {
    /// Opens or makes it. One that is longer than the file, or that is another folder's file too (a good one of a repair),
    /// is made anew: such a file is never written to.
    fn open(path: &Path, size: u64) -> Result<Self, TaskError> {
        if let Some(parent) = path.parent() {
            make_folder(parent)?;
        }
        match fs::symlink_metadata(path) {
            Ok(seen) if !seen.is_file() => remove(path)?,
            Ok(seen) if seen.len() > size || (seen.nlink() > 1 && seen.len() != size) => {
                remove(path)?;
            }
            _ => {}
        }
        let file = open(path).map_err(|source| TaskError::io("make", path, source))?;
        let length = file
            .metadata()
            .map_err(|source| TaskError::io("read", path, source))?
            .len();
        let part = Self {
            path: path.to_owned(),
            file,
            length,
        };
        if length < size {
            part.preallocate(size)?;
        }
        Ok(part)
    }

    /// Takes the blocks now, so that a volume that fills up is noticed before the download and not in its last byte. The
    /// length stays, since it is what the next run goes on from.
    fn preallocate(&self, size: u64) -> Result<(), TaskError> {
        match fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, size) {
            Err(errno) if io::Error::from(errno).kind() == io::ErrorKind::StorageFull => {
                Err(TaskError::io("write", &self.path, errno.into()))
            }
            // File systems without the call take the blocks as they are written.
            _ => Ok(()),
        }
    }

    fn seek(&mut self, to: u64) -> Result<(), TaskError> {
        self.file
            .seek(SeekFrom::Start(to))
            .map(drop)
            .map_err(|source| TaskError::io("read", &self.path, source))
    }

    fn clear(&mut self, size: u64) -> Result<(), TaskError> {
        self.file
            .set_len(0)
            .map_err(|source| TaskError::io("write", &self.path, source))?;
        self.length = 0;
        self.seek(0)?;
        self.preallocate(size)
    }
}

/// Opens a part for reading and writing; one that a crash after the modes were set left has none for its owner.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o644)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // A whole one is only read.
            OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(path)
                .map_err(|_| error)
        }
        opened => opened,
    }
}

/// Removes a file or folder if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), TaskError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(seen) if seen.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(TaskError::io("remove", path, error))
        }
        _ => Ok(()),
    }
}

/// SHA-256 and length of an open file.
pub(crate) fn hash_file(
    file: &mut File,
    path: &Path,
    watch: &Watch,
) -> Result<(String, u64), TaskError> {
    let (mut hasher, mut length) = (Sha256::new(), 0);
    let mut piece = vec![0; PIECE];
    loop {
        watch.check()?;
        match file.read(&mut piece) {
            Ok(0) => return Ok((hex(&hasher.finalize()), length)),
            Ok(count) => {
                hasher.update(&piece[..count]);
                length += count as u64;
                watch.moved(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(TaskError::io("read", path, source)),
        }
    }
}
