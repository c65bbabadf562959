//! What the environment says about traces. The names are those every OpenTelemetry SDK reads; an endpoint turns traces
//! on. Sampler, headers, resource attributes and batching are read by the SDK itself; here is what it takes from us.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Uri;

const DISABLED: &str = "OTEL_SDK_DISABLED";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const QUEUE: &str = "OTEL_BSP_MAX_QUEUE_SIZE";
const TIMEOUT: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
    "OTEL_EXPORTER_OTLP_TIMEOUT",
];
const PROTOCOL: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];
const COMPRESSION: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
];

/// What follows a base endpoint.
const SIGNAL_PATH: &str = "/v1/traces";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a collector, whatever was asked for.
const MAX_TIMEOUT: Duration = Duration::from_secs(60);
const DEFAULT_QUEUE: usize = 2048;
/// A span takes about a kilobyte.
const MAX_QUEUE: usize = 65_536;
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Where spans go.
#[derive(Clone, PartialEq, Eq)]
pub struct TraceSettings {
    /// URL that spans are posted to.
    pub(super) endpoint: String,
    /// For one post.
    pub(super) timeout: Duration,
    /// Spans that may wait to be sent, those on their way included.
    pub(super) queue: usize,
    /// The service's name, where the environment gives one.
    pub(super) service_name: Option<String>,
}

impl std::fmt::Debug for TraceSettings {
    /// Without the endpoint, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceSettings")
            .field("collector", &self.collector())
            .field("timeout", &self.timeout)
            .field("queue", &self.queue)
            .field("service_name", &self.service_name)
            .finish()
    }
}

impl TraceSettings {
    /// What the environment says: settings where traces are on, and what it says that cannot be followed.
    #[must_use]
    pub fn of_environment(
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> (Option<Self>, Vec<String>) {
        let environment: BTreeMap<_, _> = environment
            .into_iter()
            .filter(|(name, value)| name.starts_with("OTEL_") && !value.trim().is_empty())
            .collect();
        let mut reader = Reader {
            environment,
            warnings: Vec::new(),
        };
        let settings = reader.settings();
        (settings, reader.warnings)
    }

    /// Host and port of the collector, for logs.
    pub(super) fn collector(&self) -> String {
        let uri: Option<Uri> = self.endpoint.parse().ok();
        let host = |uri: &Uri| {
            let host = uri.host()?;
            Some(match uri.port_u16() {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            })
        };
        uri.as_ref().and_then(host).unwrap_or_default()
    }
}

struct Reader {
    environment: BTreeMap<String, String>,
    warnings: Vec<String>,
}

impl Reader {
    fn settings(&mut self) -> Option<TraceSettings> {
        if self
            .get(DISABLED)
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return None;
        }
        match self.get(EXPORTER) {
            None | Some("otlp") => {}
            Some("none") => return None,
            Some(_) => {
                self.warn(EXPORTER, "`otlp` and `none` are known; traces are off");
                return None;
            }
        }
        let endpoint = self.endpoint()?;
        self.said_but_not_followed();
        Some(TraceSettings {
            endpoint,
            timeout: self.timeout(),
            queue: self.queue(),
            service_name: self.get(SERVICE_NAME).map(str::to_owned),
        })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.environment.get(name).map(|value| value.trim())
    }

    /// Names the variable, never its value: a value may hold a secret.
    fn warn(&mut self, name: &str, message: &str) {
        self.warnings
            .push(format!("environment variable {name}: {message}"));
    }

    fn endpoint(&mut self) -> Option<String> {
        let (name, url) = match (self.get(TRACES_ENDPOINT), self.get(ENDPOINT)) {
            (Some(url), _) => (TRACES_ENDPOINT, url.to_owned()),
            (None, Some(base)) => (
                ENDPOINT,
                format!("{}{SIGNAL_PATH}", base.trim_end_matches('/')),
            ),
            (None, None) => return None,
        };
        let usable = url.parse::<Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        });
        if !usable {
            self.warn(name, "is no http or https URL; traces are off");
            return None;
        }
        Some(url)
    }

    fn timeout(&mut self) -> Duration {
        let Some((name, value)) = self.first(TIMEOUT) else {
            return DEFAULT_TIMEOUT;
        };
        match value.parse().map(Duration::from_millis) {
            Ok(timeout) if !timeout.is_zero() => timeout.min(MAX_TIMEOUT),
            _ => {
                self.warn(name, "is no number of milliseconds; 10 s hold");
                DEFAULT_TIMEOUT
            }
        }
    }

    fn queue(&mut self) -> usize {
        match self.get(QUEUE).map(str::parse) {
            None => DEFAULT_QUEUE,
            Some(Ok(size)) if (1..=MAX_QUEUE).contains(&size) => size,
            Some(_) => {
                self.warn(QUEUE, "must be 1 to 65536; 2048 holds");
                DEFAULT_QUEUE
            }
        }
    }

    /// What the SDK would pass over in silence.
    fn said_but_not_followed(&mut self) {
        if let Some((name, value)) = self.first(PROTOCOL)
            && value != "http/protobuf"
        {
            self.warn(name, "only `http/protobuf` is spoken, and it is");
        }
        if let Some((name, value)) = self.first(COMPRESSION)
            && value != "none"
        {
            self.warn(name, "spans are sent uncompressed");
        }
        let Some(sampler) = self.get(SAMPLER) else {
            return;
        };
        if !SAMPLERS.contains(&sampler) {
            self.warn(SAMPLER, "is not known; `parentbased_always_on` holds");
        } else if sampler.ends_with("traceidratio") && !self.ratio_is_usable() {
            self.warn(SAMPLER_ARG, "must be 0 to 1 for this sampler; 1 holds");
        }
    }

    fn ratio_is_usable(&self) -> bool {
        let ratio = self.get(SAMPLER_ARG).and_then(|ratio| ratio.parse().ok());
        ratio.is_some_and(|ratio: f64| (0.0..=1.0).contains(&ratio))
    }

    fn first(&self, names: [&'static str; 2]) -> Option<(&'static str, String)> {
        names
            .into_iter()
            .find_map(|name| Some((name, self.get(name)?.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> (Option<TraceSettings>, Vec<String>) {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        TraceSettings::of_environment(pairs.iter().map(owned))
    }

    #[test]
    fn an_endpoint_turns_traces_on() {
        let base = (ENDPOINT, "http://collector:4318");
        for (name, environment, endpoint) in [
            ("nothing", vec![], None),
            ("blank", vec![(ENDPOINT, " ")], None),
            ("base", vec![base], Some("http://collector:4318/v1/traces")),
            (
                "base with a slash and a path",
                vec![(ENDPOINT, "https://c/otlp/")],
                Some("https://c/otlp/v1/traces"),
            ),
            (
                "its own endpoint wins and is taken as it is",
                vec![base, (TRACES_ENDPOINT, "http://other/x")],
                Some("http://other/x"),
            ),
            ("disabled", vec![base, (DISABLED, "TRUE")], None),
            (
                "not disabled",
                vec![base, (DISABLED, "1")],
                Some("http://collector:4318/v1/traces"),
            ),
            ("no exporter", vec![base, (EXPORTER, "none")], None),
            ("a setting alone", vec![(SERVICE_NAME, "x")], None),
        ] {
            let (settings, warnings) = of(&environment);
            let found = settings.map(|settings| settings.endpoint);
            assert_eq!(found.as_deref(), endpoint, "{name}");
            assert!(warnings.is_empty(), "{name}: {warnings:?}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_said_without_its_value() {
        let base = (ENDPOINT, "http://collector:4318");
        for (name, environment, on) in [
            (ENDPOINT, vec![(ENDPOINT, "sekret:4318")], false),
            (ENDPOINT, vec![(ENDPOINT, "ftp://sekret")], false),
            (EXPORTER, vec![base, (EXPORTER, "sekret")], false),
            (TIMEOUT[1], vec![base, (TIMEOUT[1], "sekret")], true),
            (TIMEOUT[0], vec![base, (TIMEOUT[0], "0")], true),
            (QUEUE, vec![base, (QUEUE, "0")], true),
            (PROTOCOL[1], vec![base, (PROTOCOL[1], "sekret")], true),
            (COMPRESSION[1], vec![base, (COMPRESSION[1], "sekret")], true),
            (SAMPLER, vec![base, (SAMPLER, "sekret")], true),
            (SAMPLER_ARG, vec![base, (SAMPLER, "traceidratio")], true),
            (
                SAMPLER_ARG,
                vec![base, (SAMPLER, "traceidratio"), (SAMPLER_ARG, "1.5")],
                true,
            ),
        ] {
            let (settings, warnings) = of(&environment);
            assert_eq!(settings.is_some(), on, "{environment:?}");
            assert_eq!(warnings.len(), 1, "{environment:?}");
            assert!(warnings[0].contains(name), "{warnings:?}");
            assert!(!warnings[0].contains("sekret"), "{warnings:?}");
        }
    }

    #[test]
    fn numbers_are_bounded() {
        let base = (ENDPOINT, "http://user:pass@collector:4318");
        let (settings, _) = of(&[base]);
        let settings = settings.unwrap();
        assert_eq!((settings.timeout, settings.queue), (DEFAULT_TIMEOUT, 2048));
        assert!(!format!("{settings:?}").contains("pass"));
        let (settings, _) = of(&[
            base,
            (TIMEOUT[1], "1500"),
            (TIMEOUT[0], "999999"),
            (QUEUE, "5"),
        ]);
        let settings = settings.unwrap();
        assert_eq!((settings.timeout, settings.queue), (MAX_TIMEOUT, 5));
    }
}
