//! `relay laya connect` (routing.md 20, 21): points this client at a router, after the router was tested; without an
//! address it shows and tests what is in force. The key is shown nowhere.

mod key;
mod store;
mod test;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use routing::settings::{BadAddress, LayaSettings, origin};
use serde::Serialize;

use crate::client::Client;
use crate::contact::{self, note};
use crate::error::{CliError, Exit};
use crate::home::{AddressFrom, Home, KeyFrom, Router, is_loopback};
use crate::output::{OutputArguments, field};
use crate::spool::Spool;
use crate::terminal::{Styles, escape, tell};

/// Arguments of `relay laya connect`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ConnectArguments {
    /// Address of the router, with or without `/v1`
    #[arg(value_name = "URL")]
    url: Option<String>,

    /// File that holds its key and nothing else; `-` reads standard input
    #[arg(long, value_name = "FILE|-", requires = "url")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArguments,
}

const AFTER_HELP: &str = "\
Examples:
  relay laya connect
  relay laya connect https://router.team.example --token-file key.txt
  pass show team/router | relay laya connect https://router.team.example --token-file -
  relay laya connect http://127.0.0.1:8737

Written, once the router passed the test: `laya.baseUrl` in <agent folder>/settings.json, and with `--token-file` the
key and its address as `laya` in <agent folder>/auth.json (0600). Everything else in both files stays as it is. A stored
key is sent to its address alone; one without an address gets that in force when another is connected.

Exit codes: 0 tested (and written), 1 other error (also: the key is refused, other questions than ours), 2 bad arguments,
4 no router answers";

/// What is in force, or is to be, and what the test said.
#[derive(Debug, Serialize)]
struct Connection<'a> {
    address: &'a str,
    address_from: String,
    key_from: String,
    #[serde(flatten)]
    tested: &'a test::Tested,
    /// Files that were changed.
    written: Vec<PathBuf>,
}

/// Runs the command.
pub(super) fn run(arguments: &ConnectArguments) -> Result<Exit, CliError> {
    let environment = |name: &str| std::env::var_os(name);
    let home = Home::find(&environment)?;
    // Files that are damaged stop it here, before anybody is asked: they are the user's, and nothing is written to them.
    let settings = home.settings()?;
    note(&settings.notes);
    let in_force = home.router(&settings.laya, &environment)?;
    let written = match &arguments.url {
        None => {
            note(&in_force.notes);
            let client = client(in_force, &settings.laya);
            show(&client, &home, arguments)?;
            finish(&client, &home, &settings.laya);
            return Ok(Exit::Done);
        }
        Some(url) => {
            let wanted = wanted(url, arguments.token_file.as_deref(), &in_force)?;
            note(&wanted.notes);
            if let Some(warning) = open_line(&wanted) {
                tell(&format!("warning: {}\n", escape(&warning)));
            }
            let client = client(wanted, &settings.laya);
            let tested = test::test(&client).map_err(|error| error.also("nothing was written"))?;
            let written = store::write(&home, client.router())?;
            print(&client, &home, &tested, &written, arguments)?;
            finish(&client, &home, &settings.laya);
            written
        }
    };
    for path in written {
        tell(&format!(
            "written: {}\n",
            escape(&path.display().to_string())
        ));
    }
    Ok(Exit::Done)
}

fn client(router: Router, laya: &LayaSettings) -> Client {
    let timeout = Duration::from_millis(u64::from(laya.timeout_millis));
    Client::new(router, timeout)
}

fn finish(client: &Client, home: &Home, laya: &LayaSettings) {
    contact::deliver(&Spool::new(home.waiting_outcomes()), client, laya.telemetry);
}

/// Shows what is in force, also where the test fails: that is when it is looked for.
fn show(client: &Client, home: &Home, arguments: &ConnectArguments) -> Result<(), CliError> {
    match test::test(client) {
        Ok(tested) => print(client, home, &tested, &[], arguments),
        Err(error) => {
            tell(&target(client.router(), home, Styles::PLAIN));
            Err(error)
        }
    }
}

fn print(
    client: &Client,
    home: &Home,
    tested: &test::Tested,
    written: &[PathBuf],
    arguments: &ConnectArguments,
) -> Result<(), CliError> {
    let router = client.router();
    let connection = Connection {
        address: &router.origin,
        address_from: address_from(router, home),
        key_from: key_from(router),
        tested,
        written: written.to_vec(),
    };
    arguments.output.print(&connection, |styles| {
        target(router, home, styles) + &test::render(tested, styles)
    })
}

/// Address and key, and where they come from.
fn target(router: &Router, home: &Home, styles: Styles) -> String {
    let from = address_from(router, home);
    let address = format!("{}   ({})", escape(&router.origin), escape(&from));
    field("router", &address, styles) + &field("key", &escape(&key_from(router)), styles)
}

fn address_from(router: &Router, home: &Home) -> String {
    match router.address_from {
        AddressFrom::Settings => {
            format!("laya.baseUrl in {}", home.settings_file().display())
        }
        AddressFrom::Environment => "LAYA_BASE_URL".to_owned(),
        AddressFrom::Daemon => "the running relayd".to_owned(),
        AddressFrom::Default => "default".to_owned(),
        AddressFrom::Argument => "argument".to_owned(),
    }
}

fn key_from(router: &Router) -> String {
    match router.key_from {
        KeyFrom::Stored => format!("laya in {}", router.keys.file.display()),
        KeyFrom::Environment => "LAYA_API_KEY".to_owned(),
        KeyFrom::File => "--token-file".to_owned(),
        KeyFrom::Nobody => "none".to_owned(),
    }
}

/// The router that is to be in force, with the key it is given: that of the file, else the one that belongs there. A
/// stored key without an address belongs to the one in force, and no other is given it.
fn wanted(url: &str, token_file: Option<&Path>, in_force: &Router) -> Result<Router, CliError> {
    let origin = origin(url).map_err(|error| bad_address(url, error))?;
    let keys = in_force.keys.clone().belonging_to(&in_force.origin);
    let mut notes = keys.notes.clone();
    let (key, key_from) = if let Some(path) = token_file {
        (key::read(path)?, KeyFrom::File)
    } else {
        let given = keys.of(origin)?;
        if let Some(elsewhere) = given.note {
            if given.from == KeyFrom::Nobody && !is_loopback(origin) {
                return Err(CliError::usage(elsewhere)
                    .hint("name the key of that router with `--token-file`"));
            }
            notes.push(elsewhere);
        }
        (given.key, given.from)
    };
    Ok(Router {
        origin: origin.to_owned(),
        address_from: AddressFrom::Argument,
        key,
        key_from,
        keys,
        notes,
    })
}

/// What is to be said before a key goes over a line that others can read.
fn open_line(router: &Router) -> Option<String> {
    let open = router.origin.starts_with("http://") && !is_loopback(&router.origin);
    (open && router.key_from != KeyFrom::Nobody).then(|| {
        format!(
            "{} is not encrypted: whoever is on the way there can read the key and every request; use https",
            router.origin
        )
    })
}

/// An address that cannot be, shown unless it may hold a password.
fn bad_address(url: &str, error: BadAddress) -> CliError {
    let shown = if url.contains('@') {
        String::new()
    } else {
        format!(" `{}`", url.chars().take(200).collect::<String>())
    };
    let wrong = CliError::usage(format!("the address{shown} {error}"));
    match error {
        BadAddress::Credentials => {
            wrong.hint("write the key of the router into a file and name that with `--token-file`")
        }
        _ => {
            wrong.hint("an address looks like https://router.team.example or http://127.0.0.1:8737")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{Keys, StoredKey};

    fn in_force(origin: &str, from: KeyFrom) -> Router {
        Router {
            origin: origin.to_owned(),
            address_from: AddressFrom::Settings,
            key: "key-in-force".to_owned(),
            key_from: from,
            keys: Keys::default(),
            notes: vec!["a note".to_owned()],
        }
    }

    #[test]
    fn a_stored_key_goes_to_no_other_address() {
        let (old, this) = ("https://old.example", "http://127.0.0.1:8737");
        let stored = Some(("old-key", KeyFrom::Stored));
        let nobody = Some(("local", KeyFrom::Nobody));
        for (name, in_force_at, address, url, expected, notes) in [
            (
                "the same address",
                old,
                None,
                "https://old.example/v1/",
                stored,
                0,
            ),
            ("another one", old, None, "https://new.example", None, 0),
            ("this machine", old, None, this, nobody, 1),
            ("from this machine back", this, Some(old), old, stored, 0),
            ("to this machine again", this, Some(old), this, nobody, 1),
            (
                "from this machine to another",
                this,
                Some(old),
                "https://new.example",
                None,
                0,
            ),
        ] {
            let mut in_force = in_force(in_force_at, KeyFrom::Stored);
            in_force.keys.stored = Some(StoredKey {
                key: "old-key".to_owned(),
                address: address.map(str::to_owned),
            });
            let wanted = wanted(url, None, &in_force);
            let seen = wanted
                .as_ref()
                .ok()
                .map(|router| (router.key.as_str(), router.key_from));
            assert_eq!(seen, expected, "{name}");
            let noted = wanted.as_ref().map_or(0, |router| router.notes.len());
            assert_eq!(noted, notes, "{name}");
            if let Err(error) = wanted {
                let text = error.render();
                assert!(
                    error.exit == Exit::Usage && text.contains(old) && !text.contains("old-key"),
                    "{name}: {text}"
                );
            }
        }
    }

    #[test]
    fn a_key_on_an_open_line_is_warned_of() {
        for (origin, from, warned) in [
            ("http://router.example", KeyFrom::File, true),
            ("http://10.0.0.1:8737", KeyFrom::Environment, true),
            ("http://10.0.0.1:8737", KeyFrom::Nobody, false),
            ("http://127.0.0.1:8737", KeyFrom::File, false),
            ("https://router.example", KeyFrom::File, false),
        ] {
            let told = open_line(&in_force(origin, from));
            assert_eq!(told.is_some(), warned, "{origin} {from:?}");
        }
    }

    #[test]
    fn an_address_with_a_password_is_refused_without_it() {
        for (url, told) in [
            (
                "https://me:hunter2@new.example",
                "must not hold a user name or a password",
            ),
            ("router", "`router` must begin with http:// or https://"),
        ] {
            let error =
                wanted(url, None, &in_force("https://old.example", KeyFrom::Nobody)).unwrap_err();
            let text = error.render();
            assert!(error.exit == Exit::Usage && text.contains(told), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
