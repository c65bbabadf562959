//! The address of a database. It holds a password: neither `Debug` nor any error shows it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Where the server is and who we are there.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Address(..)")
    }
}

impl Address {
    /// Reads a `postgres://` address.
    ///
    /// # Errors
    /// Why it is refused, in words that do not repeat it.
    pub(crate) fn parse(text: &str, deadline: Duration) -> Result<Self, String> {
        const FORM: &str = "postgres://user:password@host:port/database?sslmode=disable";
        if !(text.starts_with("postgres://") || text.starts_with("postgresql://")) {
            return Err(format!("it must be of the form {FORM}"));
        }
        let other = || {
            format!(
                "it is not of the form {FORM}, or has an option we do not know; \
                 in names and passwords, write `@`, `:`, `/`, `?` and `%` as %40, %3A, %2F, %3F and %25"
            )
        };
        // The parser's own words may hold pieces of the password.
        let mut config = Config::from_str(text).map_err(|_| other())?;
        // A host with an `@` begins with the end of a password.
        let is_odd = |host: &Host| matches!(host, Host::Tcp(name) if name.contains('@'));
        if config.get_hosts().iter().any(is_odd) {
            return Err(other());
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err("it names no host".to_owned());
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err(
                "it asks for TLS (sslmode=require), which this version cannot do; \
                 use a tunnel or a private network and sslmode=disable"
                    .to_owned(),
            );
        }
        config.ssl_mode(SslMode::Disable);
        config.connect_timeout(deadline);
        config.tcp_user_timeout(deadline * 5);
        config.keepalives_idle(Duration::from_secs(30));
        if config.get_application_name().is_none() {
            config.application_name("relay");
        }
        Ok(Self { config })
    }

    /// Where it is, for messages.
    pub(crate) fn place(&self) -> String {
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => self
                .config
                .get_hostaddrs()
                .first()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        let port = self.config.get_ports().first().copied().unwrap_or(5432);
        let name = self.config.get_dbname().unwrap_or_default();
        format!("PostgreSQL at {host}:{port}, database `{name}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, String> {
        Address::parse(text, Duration::from_secs(2))
    }

    #[test]
    fn says_where_without_the_password() {
        let address = parse("postgres://ann:geheim@db.example:6000/relay").unwrap();
        assert_eq!(
            address.place(),
            "PostgreSQL at db.example:6000, database `relay`"
        );
        assert!(!format!("{address:?}").contains("geheim"));
    }

    #[test]
    fn refuses_without_repeating_the_password() {
        for (name, text) in [
            ("scheme", "mysql://ann:geheim@host/relay"),
            ("@ in the password", "postgres://ann:ge@heim@host/relay"),
            ("no host", "postgresql://"),
            (
                "unknown option",
                "postgres://ann:geheim@host/relay?geheim=1",
            ),
            ("TLS", "postgres://ann:geheim@host/relay?sslmode=require"),
        ] {
            let refused = parse(text).expect_err(name);
            assert!(!refused.contains("heim"), "{name}: {refused}");
        }
    }
}
