//! Work that would hold up the threads that answer, on a thread of its own.

use api::problem::Slug;
use service::problem::Failure;

/// Runs what takes milliseconds beside the runtime. A panic is raised again here, where it is caught, counted and answered
/// like any other.
///
/// # Errors
/// When the runtime is ending and takes no more work.
pub(crate) async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(Failure::new(Slug::Unavailable, "the router is stopping")),
        },
    }
}
