//! Threads and passes: one pool that every checkpoint and every request uses, and the one place where rows of tokens
//! become numbers. Queues, deadlines and turns are the caller's; a pass, once begun, runs to its end.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::checkpoint::{Checkpoint, LoadError, LoadOptions};
use crate::kernels::{CpuFeatures, Level};
use crate::model::{Precision, RowOutput, TokenRow, Workspace, forward, workspace_bound};

/// Tokens of a pass beyond which a longer one is no faster per token: the passes that [`plan_passes`] makes are best
/// bounded by this, since others wait for the end of a pass.
pub const PASS_TOKENS: usize = 2048;

/// Buffers kept between passes, per precision; passes beyond that run with their own.
const SPARE: usize = 2;

/// How an engine runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct EngineOptions {
    /// Threads of the pool; none: the cores that affinity and cgroup quota grant.
    pub threads: Option<usize>,
    /// Upper limit on instruction sets.
    pub cpu: CpuFeatures,
}

/// The pool and its buffers. Share it behind an `Arc`.
pub struct Engine {
    pool: rayon::ThreadPool,
    level: Level,
    spare: Mutex<Vec<(Precision, Workspace)>>,
}

/// The threads of an engine could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} engine threads: {source}")]
pub struct EngineError {
    threads: usize,
    source: rayon::ThreadPoolBuildError,
}

/// Rows that the model cannot read. A bug of the caller, never of a client: rows made by [`crate::encode`] are sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A row has no tokens.
    #[error("row {row} is empty")]
    EmptyRow {
        /// Position of the row.
        row: usize,
    },
    /// A token lies beyond the vocabulary.
    #[error("row {row} holds token {token}, the model knows {tokens}")]
    UnknownToken {
        /// Position of the row.
        row: usize,
        /// The token.
        token: u32,
        /// Tokens of the vocabulary.
        tokens: usize,
    },
    /// A marker lies outside its row, or markers are not ascending behind the first token.
    #[error("row {row} has a marker at {marker} that is out of order or outside its {len} tokens")]
    BadMarker {
        /// Position of the row.
        row: usize,
        /// The marker.
        marker: usize,
        /// Tokens of the row.
        len: usize,
    },
}

impl Engine {
    /// Starts the threads.
    ///
    /// # Errors
    /// When the system gives no threads.
    pub fn new(options: EngineOptions) -> Result<Self, EngineError> {
        let granted = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = options.threads.filter(|n| *n > 0).unwrap_or_else(granted);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("laya-{i}"));
        let pool = pool
            .build()
            .map_err(|source| EngineError { threads, source })?;
        Ok(Self {
            pool,
            level: Level::detect(options.cpu),
            spare: Mutex::new(Vec::new()),
        })
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// The instruction set in use, for reports: `portable`, `avx2`, `avx512`, `avx512-vnni`.
    #[must_use]
    pub const fn kernels(&self) -> &'static str {
        self.level.as_str()
    }

    /// Verifies and loads a checkpoint on the engine's threads.
    ///
    /// # Errors
    /// As [`Checkpoint::load`].
    pub fn load(&self, dir: &Path, options: &LoadOptions) -> Result<Checkpoint, LoadError> {
        self.pool.install(|| Checkpoint::load(dir, options))
    }

    /// One pass: all rows at once, packed one behind the other. Rows do not see each other, and a row's numbers are the
    /// same bits alone and among others. Blocks until done; several callers share the pool.
    ///
    /// # Errors
    /// When a row is not one that the model can read.
    pub fn run(
        &self,
        checkpoint: &Checkpoint,
        rows: &[TokenRow<'_>],
    ) -> Result<Vec<RowOutput>, RunError> {
        let model = checkpoint.model();
        check(rows, model.embedding.tokens())?;
        let mut work = self.take(model.precision);
        let outputs = self
            .pool
            .install(|| forward(model, self.level, rows, &mut work));
        self.put_back(model.precision, work);
        Ok(outputs)
    }

    /// Most memory in bytes that the buffers of a pass take: `tokens` in all, the longest row `longest`, `options`
    /// options in all.
    #[must_use]
    pub fn pass_bytes(
        &self,
        checkpoint: &Checkpoint,
        tokens: usize,
        longest: usize,
        options: usize,
    ) -> usize {
        workspace_bound(
            checkpoint.model(),
            tokens,
            longest,
            2 * options,
            self.threads(),
        )
    }

    fn take(&self, precision: Precision) -> Workspace {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        match spare.iter().position(|(p, _)| *p == precision) {
            Some(at) => spare.swap_remove(at).1,
            None => Workspace::new(precision, self.threads()),
        }
    }

    fn put_back(&self, precision: Precision, work: Workspace) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.iter().filter(|(p, _)| *p == precision).count() < SPARE {
            spare.push((precision, work));
        }
    }

    /// Gives the memory of idle buffers back.
    pub fn release_buffers(&self) {
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Memory that idle buffers hold.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .map(|(_, work)| work.held_bytes())
            .sum()
    }

    #[cfg(test)]
    pub(crate) fn encode_cls(
        &self,
        checkpoint: &Checkpoint,
        rows: &[TokenRow<'_>],
    ) -> Vec<Vec<f32>> {
        let mut work = self.take(checkpoint.precision());
        self.pool
            .install(|| crate::model::encode_cls(checkpoint.model(), self.level, rows, &mut work))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("threads", &self.threads())
            .field("kernels", &self.kernels())
            .finish_non_exhaustive()
    }
}

fn check(rows: &[TokenRow<'_>], tokens: usize) -> Result<(), RunError> {
    for (row, TokenRow { ids, markers, .. }) in rows.iter().enumerate() {
        if ids.is_empty() {
            return Err(RunError::EmptyRow { row });
        }
        if let Some(token) = ids.iter().find(|id| **id as usize >= tokens) {
            return Err(RunError::UnknownToken {
                row,
                token: *token,
                tokens,
            });
        }
        let mut least = 1;
        for marker in *markers {
            if *marker < least || *marker >= ids.len() {
                return Err(RunError::BadMarker {
                    row,
                    marker: *marker,
                    len: ids.len(),
                });
            }
            least = marker + 1;
        }
    }
    Ok(())
}

/// Splits rows, given by their lengths in arrival order, into passes of at most `limit` tokens. A row longer than that
/// is a pass of its own. Ranges are consecutive and cover all rows: rows of several requests may stand in one pass,
/// since none of them sees another.
#[must_use]
pub fn plan_passes(lengths: &[usize], limit: usize) -> Vec<std::ops::Range<usize>> {
    let mut passes = Vec::new();
    let (mut start, mut tokens) = (0, 0usize);
    for (at, length) in lengths.iter().enumerate() {
        if at > start && tokens.saturating_add(*length) > limit {
            passes.push(start..at);
            (start, tokens) = (at, 0);
        }
        tokens = tokens.saturating_add(*length);
    }
    if start < lengths.len() {
        passes.push(start..lengths.len());
    }
    passes
}

#[cfg(test)]
mod tests {
    use decision::contract::Kind;

    use super::*;

    #[test]
    fn passes_hold_at_most_the_limit_and_every_row_once() {
        for (lengths, limit, ends) in [
            (&[][..], 10, &[][..]),
            (&[3, 3, 3], 10, &[3]),
            (&[4, 4, 4], 10, &[2, 3]),
            (&[4, 40, 4], 10, &[1, 2, 3]),
            (&[10, 10], 10, &[1, 2]),
        ] {
            let passes = plan_passes(lengths, limit);
            assert_eq!(
                passes.iter().map(|p| p.end).collect::<Vec<_>>(),
                ends,
                "{lengths:?}"
            );
            assert!(passes.first().is_none_or(|p| p.start == 0), "{lengths:?}");
            assert!(
                passes.windows(2).all(|w| w[0].end == w[1].start),
                "{lengths:?}"
            );
        }
    }

    #[test]
    fn rows_that_the_model_cannot_read_are_refused() {
        fn row<'a>(ids: &'a [u32], markers: &'a [usize]) -> TokenRow<'a> {
            TokenRow {
                ids,
                markers,
                kind: Kind::Choice,
            }
        }
        assert_eq!(check(&[row(&[1, 2], &[1])], 3), Ok(()));
        assert_eq!(
            check(&[row(&[], &[])], 3),
            Err(RunError::EmptyRow { row: 0 })
        );
        assert_eq!(
            check(&[row(&[1, 3], &[])], 3),
            Err(RunError::UnknownToken {
                row: 0,
                token: 3,
                tokens: 3
            })
        );
        for markers in [&[0][..], &[2], &[1, 1]] {
            assert!(
                matches!(
                    check(&[row(&[1, 2], markers)], 3),
                    Err(RunError::BadMarker { .. })
                ),
                "{markers:?}"
            );
        }
    }
}
