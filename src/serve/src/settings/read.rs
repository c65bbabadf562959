//! From values to [`Settings`], each variable by the rule of its row in wire.md 3: a bad value is an error, a warning and
//! the default, or the default with a warning too, since nothing is dropped in silence.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use decision::json::{Text, Value, repr_text};
use laya::{CpuFeatures, Precision};

use super::digests::read_sha256_digests;
use super::variables::{Given, Values};
use super::{
    ApiKey, Bind, Device, Extras, Loading, LogLevel, Passes, Serving, SettingError, Settings,
    Sha256Digests, WithoutKey,
};
use crate::registry::{ONLY, Registry, read_extra_models};

/// Longest time that a variable may say, in seconds: a year.
const LONGEST_SECONDS: f64 = 31_536_000.0;

/// Most engine threads for each core that is granted: more only wait for each other.
const THREADS_PER_CORE: usize = 4;

struct Reader<'a> {
    values: &'a Values,
    warnings: Vec<String>,
}

pub(super) fn settings(
    values: &Values,
    extras: &Extras,
) -> Result<(Settings, Vec<String>), SettingError> {
    let mut reader = Reader {
        values,
        warnings: Vec::new(),
    };
    let bind = reader.bind()?;
    let device = reader.device()?;
    let registry = reader.registry(extras.model.as_deref())?;
    let default_model = reader.default_model(&registry)?;
    let log_level = reader.log_level()?;
    let preload = reader.preload(&registry)?;
    let serving = reader.serving(extras.api_key.as_deref(), default_model)?;
    let passes = reader.passes()?;
    let drain_timeout = reader.seconds_or_error("LAYA_DRAIN_TIMEOUT", 30.0)?;
    let loading = reader.loading(registry, preload, device, extras)?;
    let settings = Settings {
        bind,
        serving,
        loading,
        passes,
        log_level,
        drain_timeout,
    };
    Ok((settings, reader.warnings))
}

impl Reader<'_> {
    fn get(&self, name: &str) -> Option<&Given> {
        self.values.get(name)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.get(name).map(|given| given.value.trim())
    }

    fn truth(&self, name: &str, default: bool) -> bool {
        self.text(name).map_or(default, |text| {
            ["1", "true", "yes", "on"].contains(&text.to_lowercase().as_str())
        })
    }

    fn ignored(&mut self, given: &Given, expected: &str) {
        self.warnings.push(format!(
            "{} {} is ignored: {expected}",
            given.name,
            repr(&given.value)
        ));
    }

    /// An integer of at least `least`; anything else is ignored with a warning.
    fn count(&mut self, name: &str, least: usize, default: usize) -> usize {
        self.some_count(name, least).unwrap_or(default)
    }

    fn some_count(&mut self, name: &str, least: usize) -> Option<usize> {
        let given = self.get(name)?.clone();
        match given.value.trim().parse() {
            Ok(count) if count >= least => Some(count),
            _ => {
                self.ignored(&given, &format!("expected an integer of at least {least}"));
                None
            }
        }
    }

    fn seconds_or_error(&self, name: &str, default: f64) -> Result<Duration, SettingError> {
        match self.get(name) {
            None => Ok(Duration::from_secs_f64(default)),
            Some(given) => positive_seconds(&given.value)
                .ok_or_else(|| bad(given, "must be a positive number of seconds")),
        }
    }

    fn bind(&self) -> Result<Bind, SettingError> {
        let port = match self.get("LAYA_PORT") {
            None => 8000,
            Some(given) => given
                .value
                .trim()
                .parse()
                .ok()
                .filter(|port| *port != 0 || given.name.starts_with("--"))
                .ok_or_else(|| bad(given, "must be an integer 1-65535"))?,
        };
        Ok(Bind {
            host: self.text("LAYA_HOST").unwrap_or("127.0.0.1").to_owned(),
            port,
            without_key: if self.truth("LAYA_ALLOW_UNAUTHENTICATED", false) {
                WithoutKey::Anywhere
            } else {
                WithoutKey::LoopbackOnly
            },
        })
    }

    fn device(&self) -> Result<Device, SettingError> {
        let Some(given) = self.get("LAYA_DEVICE") else {
            return Ok(Device::Auto);
        };
        let text = given.value.trim().to_lowercase();
        let (kind, index) = text.split_once(':').unwrap_or((&text, "0"));
        let number = index.parse::<u16>().is_ok();
        match kind {
            "auto" if text == "auto" => Ok(Device::Auto),
            "cpu" if number => Ok(Device::Cpu),
            "cuda" | "mps" | "xpu" if number => Ok(Device::Absent(text)),
            _ => Err(bad(given, "must be auto, cpu or cuda")),
        }
    }

    fn registry(&mut self, only: Option<&str>) -> Result<Registry, SettingError> {
        let extra = self.get("LAYA_EXTRA_MODELS").cloned();
        if let Some(folder) = only {
            if let Some(given) = extra {
                self.ignored(&given, "--model serves one checkpoint");
            }
            return Ok(Registry::only(folder));
        }
        let Some(given) = extra else {
            return Ok(Registry::with_extra(&[]));
        };
        let (entries, warnings) =
            read_extra_models(&given.value).map_err(|detail| SettingError {
                name: format!("{}:", given.name),
                detail,
            })?;
        self.warnings.extend(warnings);
        Ok(Registry::with_extra(&entries))
    }

    fn default_model(&self, registry: &Registry) -> Result<String, SettingError> {
        let Some(names) = registry.names() else {
            return Ok(ONLY.to_owned());
        };
        match self.get("LAYA_DEFAULT_MODEL") {
            None => Ok("multilingual".to_owned()),
            Some(given) => names
                .resolve(&given.value)
                .map(str::to_owned)
                .ok_or_else(|| {
                    let unknown = names.unknown(&Value::from(given.value.as_str()));
                    bad(given, &unknown)
                }),
        }
    }

    fn log_level(&self) -> Result<LogLevel, SettingError> {
        let Some(given) = self.get("LAYA_LOG_LEVEL") else {
            return Ok(LogLevel::Info);
        };
        match given.value.trim().to_lowercase().as_str() {
            "critical" | "error" => Ok(LogLevel::Error),
            "warning" => Ok(LogLevel::Warning),
            "info" => Ok(LogLevel::Info),
            "debug" => Ok(LogLevel::Debug),
            "trace" => Ok(LogLevel::Trace),
            _ => Err(bad(
                given,
                "must be one of critical, debug, error, info, trace, warning",
            )),
        }
    }

    fn preload(&self, registry: &Registry) -> Result<Vec<String>, SettingError> {
        // Read before anything else: a wrong name is one though nothing is preloaded.
        let named = self.models(registry)?;
        if !self.truth("LAYA_PRELOAD", true) {
            return Ok(Vec::new());
        }
        let all = || {
            registry
                .entries()
                .iter()
                .map(|entry| entry.name.clone())
                .collect()
        };
        Ok(if named.is_empty() { all() } else { named })
    }

    /// The registered names of `LAYA_MODELS`, each once.
    fn models(&self, registry: &Registry) -> Result<Vec<String>, SettingError> {
        let (Some(given), Some(names)) = (self.get("LAYA_MODELS"), registry.names()) else {
            return Ok(Vec::new());
        };
        let mut preload: Vec<String> = Vec::new();
        for name in given
            .value
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
        {
            let known = names
                .resolve(name)
                .ok_or_else(|| bad(given, &names.unknown(&Value::from(name))))?;
            if !preload.iter().any(|name| name == known) {
                preload.push(known.to_owned());
            }
        }
        Ok(preload)
    }

    fn serving(
        &mut self,
        key: Option<&str>,
        default_model: String,
    ) -> Result<Serving, SettingError> {
        let environment_key = self.get("LAYA_API_KEY").map(|given| given.value.clone());
        let origins = self.text("LAYA_ALLOWED_ORIGINS").unwrap_or_default();
        let allowed_origins = origins
            .split(',')
            .map(|origin| origin.trim().trim_end_matches('/').to_ascii_lowercase())
            .filter(|origin| !origin.is_empty())
            .collect();
        Ok(Serving {
            api_key: key.or(environment_key.as_deref()).and_then(ApiKey::new),
            root_path: self.text("LAYA_ROOT_PATH").unwrap_or_default().to_owned(),
            allowed_origins,
            max_concurrent: self.count("LAYA_MAX_CONCURRENT", 1, 16),
            max_token_budget: self.count("LAYA_MAX_TOKEN_BUDGET", 1, 8192),
            body_read_timeout: self.body_read_timeout(),
            request_timeout: self.seconds_or_error("LAYA_REQUEST_TIMEOUT", 60.0)?,
            strict: self.truth("LAYA_JEV_STRICT", false),
            tournament_group: self.tournament_group(),
            auto_task: self.truth("LAYA_AUTO_TASK", false),
            default_model,
        })
    }

    fn body_read_timeout(&mut self) -> Duration {
        let read = self.get("LAYA_BODY_READ_TIMEOUT").cloned().map(|given| {
            let seconds = positive_seconds(&given.value);
            if seconds.is_none() {
                self.ignored(&given, "expected a positive number of seconds");
            }
            seconds
        });
        read.flatten().unwrap_or(Duration::from_secs(10))
    }

    fn tournament_group(&mut self) -> Option<usize> {
        let given = self.get("LAYA_TOURNAMENT_GROUP")?.clone();
        let group: Option<usize> = given.value.trim().parse().ok();
        match group {
            Some(0) => None,
            Some(group @ 2..=100) => Some(group),
            _ => {
                self.ignored(&given, "expected 2 to 100, or 0 for off");
                None
            }
        }
    }

    fn passes(&mut self) -> Result<Passes, SettingError> {
        let window = self.count("LAYA_BATCH_WINDOW_US", 0, 0);
        Ok(Passes {
            threads: self.threads(),
            cpu: self.parsed("LAYA_CPU_FEATURES", CpuFeatures::All)?,
            max_tokens: self.count("LAYA_MAX_BATCH_TOKENS", 1, 131_072),
            // A window beyond a second would be a mistake of units.
            window: Duration::from_micros(u64::try_from(window).unwrap_or(0).min(1_000_000)),
        })
    }

    fn threads(&mut self) -> Option<usize> {
        let threads = self.some_count("LAYA_THREADS", 1)?;
        let given = self.get("LAYA_THREADS")?.clone();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = cores.saturating_mul(THREADS_PER_CORE);
        if threads > most {
            self.warnings.push(format!(
                "{} {} is lowered to {most}, {THREADS_PER_CORE} for each core",
                given.name,
                repr(&given.value)
            ));
        }
        Some(threads.min(most))
    }

    fn parsed<T: FromStr<Err: std::fmt::Display>>(
        &self,
        name: &str,
        default: T,
    ) -> Result<T, SettingError> {
        match self.get(name) {
            None => Ok(default),
            Some(given) => given
                .value
                .trim()
                .parse()
                .map_err(|error: T::Err| bad(given, &error.to_string())),
        }
    }

    fn precision(&mut self) -> Result<Precision, SettingError> {
        if let Some(amp) = self.get("LAYA_CPU_AMP").cloned() {
            let is_read = self.get("LAYA_PRECISION").is_none();
            if is_read && amp.value.trim().eq_ignore_ascii_case("bf16") {
                return Err(bad(
                    &amp,
                    "is not served by this build; set LAYA_PRECISION to f32 or int8",
                ));
            }
            self.ignored(&amp, "precision is set by LAYA_PRECISION");
        }
        self.parsed("LAYA_PRECISION", Precision::F32)
    }

    fn idle_unload(&mut self) -> Option<Duration> {
        let given = self.get("LAYA_IDLE_UNLOAD_SECONDS")?.clone();
        match given.value.trim().parse::<f64>() {
            Ok(0.0) => None,
            Ok(seconds) if seconds > 0.0 && seconds <= LONGEST_SECONDS => {
                Some(Duration::from_secs_f64(seconds))
            }
            _ => {
                self.ignored(&given, "expected a number of seconds, or 0 for off");
                None
            }
        }
    }

    fn loading(
        &mut self,
        registry: Registry,
        preload: Vec<String>,
        device: Device,
        extras: &Extras,
    ) -> Result<Loading, SettingError> {
        let sha256 = match self.get("LAYA_SHA256_DIGESTS") {
            None => Sha256Digests::default(),
            Some(given) => read_sha256_digests(&given.value).map_err(|detail| SettingError {
                name: format!("{}:", given.name),
                detail,
            })?,
        };
        if let Some(given) = self.get("LAYA_CALIBRATION") {
            return Err(SettingError {
                name: format!("{}:", given.name),
                detail: "calibration files are not served by this build".to_owned(),
            });
        }
        let digest = |text: &str| text.trim().to_ascii_lowercase();
        Ok(Loading {
            max_loaded: self.count("LAYA_MAX_LOADED", 1, 2).max(preload.len()),
            idle_unload: self.idle_unload(),
            precision: self.precision()?,
            parity: self.text("LAYA_PARITY").map(PathBuf::from),
            unchecked: extras.unchecked,
            verify: extras.verify,
            expect_digest: extras.expect_digest.as_deref().map(digest),
            sha256,
            require_verified: self.truth("LAYA_REQUIRE_VERIFIED", false),
            contract: self.text("LAYA_CONTRACT").map(digest),
            revision: self.text("LAYA_REVISION").map(str::to_owned),
            registry,
            preload,
            device,
        })
    }
}

fn positive_seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.trim().parse().ok()?;
    (seconds > 0.0 && seconds <= LONGEST_SECONDS).then(|| Duration::from_secs_f64(seconds))
}

fn bad(given: &Given, expected: &str) -> SettingError {
    SettingError {
        name: given.name.clone(),
        detail: format!("{}: {expected}", repr(&given.value)),
    }
}

fn repr(text: &str) -> String {
    repr_text(&Text::from(text))
}
