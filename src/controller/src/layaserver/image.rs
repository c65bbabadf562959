//! The image of a version: here, on its way, or why not.

use api::kinds::laya_server::Version;
use api::reason::Reason;
use backend::ImageState;
use jiff::Timestamp;

use super::action::Action;
use super::view::{Because, View};

/// Seconds until a pull that failed is asked for again: the longest pause of the back end, which ignores whoever asks before
/// its pause, of 5 s doubled by each failure, is over. How many failures there were it does not say, so only after the
/// longest is an answer certain; asked before, each pass would act for nothing and be followed by the next at once. One second
/// more, since parts of seconds are not counted.
const RETRY_SECONDS: i64 = 301;

/// What is left to do about an image.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Need {
    /// This engine knows none.
    Nothing,
    /// Nothing: it is here, under this id.
    Here(String),
    /// It is to be fetched.
    Do(Action, Because),
    /// It is on its way, or did not come and is not tried again yet.
    Wait(Because),
}

/// What is left to do about the image of a version.
pub(super) fn need(view: &View<'_>, version: &Version) -> Need {
    if !view.checked.capabilities.images {
        return Need::Nothing;
    }
    let name = version.image.clone().unwrap_or_default();
    let ensure = |message: String| {
        let action = view.on(backend::Action::EnsureImage {
            image: name.clone(),
            pull_secrets: view.spec.image_pull_secrets.clone(),
        });
        Need::Do(action, Because::new(Reason::Preparing, message))
    };
    match state(view, version) {
        Some(ImageState::Present { id }) => Need::Here(id.clone()),
        Some(ImageState::Pulling { .. }) => Need::Wait(Because::new(
            Reason::Preparing,
            format!("image {name} is being fetched"),
        )),
        Some(ImageState::Failed {
            reason,
            message,
            at,
        }) if *reason == Reason::ImagePlatformMismatch || !is_due(view, *at) => {
            Need::Wait(Because::new(*reason, message.clone()))
        }
        Some(ImageState::Failed { message, .. }) => {
            ensure(format!("image {name} is fetched again: {message}"))
        }
        Some(ImageState::Absent) | None => ensure(format!("image {name} is fetched")),
    }
}

fn is_due(view: &View<'_>, failed_at: Timestamp) -> bool {
    view.clocks.seconds_since(failed_at) >= RETRY_SECONDS
}

/// What the engine says of the image of a version: by its id where that is known and here.
pub(super) fn state<'a>(view: &View<'a>, version: &Version) -> Option<&'a ImageState> {
    let observed = view.observed?;
    let by = |name: &Option<String>| name.as_deref().and_then(|name| observed.image(name));
    let by_id = by(&version.image_id);
    match by_id {
        Some(ImageState::Present { .. }) => by_id,
        _ => by(&version.image).or(by_id),
    }
}
