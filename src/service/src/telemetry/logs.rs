//! Where log events go: one line each on stderr, text or JSON, at or above a level. Panics become events too, without
//! their message when it was built at run time, since such a message may quote a request.

use std::io;
use std::panic::PanicHookInfo;
use std::str::FromStr;

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident: $($(#[$vdoc:meta])* $variant:ident = $word:literal),+) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $name {
            type Err = UnknownChoice;

            fn from_str(word: &str) -> Result<Self, UnknownChoice> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownChoice { expected: [$($word),+].join(", ") }),
                }
            }
        }
    };
}

/// A word that is not one of the choices.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of {expected}")]
pub struct UnknownChoice {
    /// The choices, joined by `, `.
    pub expected: String,
}

choice! {
    /// Form of a log line.
    LogFormat:
    /// For people.
    Text = "text",
    /// One JSON object a line, for collectors.
    Json = "json"
}

choice! {
    /// The least important event that is written.
    LogLevel:
    /// A person should act.
    Error = "error",
    /// Degraded and going on.
    Warn = "warn",
    /// Transitions.
    Info = "info",
    /// Passes and requests.
    Debug = "debug",
    /// Everything, without secrets.
    Trace = "trace"
}

impl LogLevel {
    /// kube logs each try that fails as an error of its own, beside giving it to its caller, who tries again and says what
    /// is worth saying.
    fn targets(self) -> Targets {
        let kube = match self {
            Self::Error | Self::Warn | Self::Info => LevelFilter::OFF,
            Self::Debug | Self::Trace => self.filter(),
        };
        Targets::new()
            .with_default(self.filter())
            .with_target("kube_client", kube)
    }

    const fn filter(self) -> LevelFilter {
        LevelFilter::from_level(match self {
            Self::Error => Level::ERROR,
            Self::Warn => Level::WARN,
            Self::Info => Level::INFO,
            Self::Debug => Level::DEBUG,
            Self::Trace => Level::TRACE,
        })
    }
}

/// Sets the log subscriber and the panic hook of this process. For a `main`, once.
///
/// # Errors
/// When a subscriber is set already.
pub fn install(format: LogFormat, level: LogLevel) -> io::Result<()> {
    let layer = match format {
        LogFormat::Text => fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(false)
            .with_target(false)
            .boxed(),
        LogFormat::Json => fmt::layer()
            .json()
            .flatten_event(true)
            .with_span_list(false)
            .with_writer(io::stderr)
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(layer.with_filter(level.targets()))
        .try_init()
        .map_err(io::Error::other)?;
    std::panic::set_hook(Box::new(report_panic));
    Ok(())
}

fn report_panic(panic: &PanicHookInfo<'_>) {
    let place = panic
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    // A literal message is code; a formatted one may carry text of a request.
    let message = panic
        .payload()
        .downcast_ref::<&'static str>()
        .unwrap_or(&"(message withheld)");
    tracing::error!(place, message, "panic");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_round_trip_and_name_what_they_expect() {
        for word in ["text", "json"] {
            assert_eq!(word.parse::<LogFormat>().unwrap().to_string(), word);
        }
        for word in ["error", "warn", "info", "debug", "trace"] {
            assert_eq!(word.parse::<LogLevel>().unwrap().to_string(), word);
        }
        assert_eq!(
            "xml".parse::<LogFormat>().unwrap_err().to_string(),
            "expected one of text, json"
        );
    }
}
