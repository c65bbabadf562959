//! `relayctl get`: objects under the columns of their server, or as they are; once, or as they change.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::Value;

use crate::call::{Call, block_on};
use crate::error::CliError;
use crate::kinds::{self, Kind, Targets};
use crate::output::table::{Columns, Headers, Namespaces, Row, Table, Width};
use crate::output::{self, Format};
use crate::refusal::ServerError;
use crate::server::{Form, Selection, Server};
use crate::terminal::{self, Reader};
use crate::watch::{Change, Seen, Watch};
use api::exit::Exit;

/// Arguments of `relayctl get`.
#[derive(Debug, Args)]
#[command(after_help = "\
Kinds: layamodels (lm), layaservers (ls), trainingruns (trun), evaluationgates (eg), routingpolicies (rp), events,
controllerrevisions, namespaces; `relay` = all of ours.

Examples:
  relayctl get rp
  relayctl get rp/default -o yaml
  relayctl get relay -A
  relayctl get rp -w
  relayctl get rp default -o jsonpath='{.status.acceptedRevision}'")]
pub(crate) struct GetArguments {
    /// KIND [NAME…] or KIND/NAME…
    #[arg(required = true, value_name = "KIND")]
    targets: Vec<String>,
    /// Go on and show each change
    #[arg(short, long)]
    watch: bool,
    /// Of all namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only objects with these labels, for example team=core,stage!=test
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// No error for a name that is not there
    #[arg(long)]
    ignore_not_found: bool,
    /// With who wrote which field
    #[arg(long)]
    show_managed_fields: bool,
}

/// Shows objects.
pub(crate) fn run(call: &Call, arguments: &GetArguments) -> Result<Exit, CliError> {
    let targets = kinds::targets(&arguments.targets)?;
    if let (Targets::Named(_), Some(_)) = (&targets, &arguments.selector) {
        return Err(CliError::usage(
            "objects are chosen by name or by labels, not both",
        ));
    }
    if matches!(targets, Targets::Named(_)) && arguments.all_namespaces {
        return Err(CliError::usage(
            "an object has one namespace; `-A` lists those of all",
        ));
    }
    block_on(Box::pin(async {
        let server = call.connect().await?;
        let getting = Getting {
            call,
            arguments,
            server: &server,
            format: call.format(),
        };
        if arguments.watch {
            return getting.watch(&targets).await;
        }
        match targets {
            Targets::All(kinds) => getting.all(&kinds).await,
            Targets::Named(named) => getting.named(&named).await,
        }
    }))
}

struct Getting<'a> {
    call: &'a Call,
    arguments: &'a GetArguments,
    server: &'a Server,
    format: Format,
}

impl Getting<'_> {
    fn form(&self) -> Form {
        if self.format.is_table() {
            Form::Table
        } else {
            Form::Objects
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            namespace: (!self.arguments.all_namespaces).then(|| self.server.namespace.clone()),
            labels: self.arguments.selector.clone(),
            fields: None,
        }
    }

    fn columns(&self, answer: &Value, prefix: &str) -> Result<Columns, CliError> {
        let width = if self.format == Format::Wide {
            Width::Wide
        } else {
            Width::Normal
        };
        let namespaces = if self.arguments.all_namespaces {
            Namespaces::Shown
        } else {
            Namespaces::Hidden
        };
        let columns = Columns::of(answer, width, namespaces, prefix);
        if columns.is_empty() {
            let strange = ServerError::Strange("it gives no tables".to_owned());
            return Err(self.server.failed(strange));
        }
        Ok(columns)
    }

    fn object(&self, object: Value) -> Value {
        if self.arguments.show_managed_fields {
            object
        } else {
            output::without_managers(object)
        }
    }

    /// Every object of kinds.
    async fn all(&self, kinds: &[&'static Kind]) -> Result<Exit, CliError> {
        let selection = self.selection();
        let several = kinds.len() > 1;
        let mut tables = Vec::new();
        let mut objects = Vec::new();
        let mut trouble = Trouble::default();
        for kind in kinds {
            let answer = match self.server.list(kind, &selection, self.form()).await {
                Ok(answer) => answer,
                // One kind that an older API lacks does not hide the others.
                Err(error) if several && error.is_not_found() => {
                    trouble.add(self.server.failed(error).attempting(kind.plural));
                    continue;
                }
                Err(error) => return Err(self.server.failed(error)),
            };
            match self.form() {
                Form::Table => {
                    let prefix = if several {
                        kind.full("")
                    } else {
                        String::new()
                    };
                    let columns = self.columns(&answer, &prefix)?;
                    let table = Table::under(&columns, columns.rows(&answer));
                    if !table.is_empty() {
                        tables.push(table.render(self.call.headers(), self.call.styles()));
                    }
                }
                Form::Objects => {
                    objects.extend(items(answer, kind).map(|object| self.object(object)))
                }
            }
        }
        if self.form() == Form::Objects {
            output::tree(&output::list(objects), &self.format)?;
        } else if tables.is_empty() {
            self.say_none(&selection);
        } else {
            terminal::print(&tables.join("\n"))?;
        }
        trouble.end(self.call)
    }

    fn say_none(&self, selection: &Selection) {
        let place = match &selection.namespace {
            Some(namespace) => format!(" in namespace {namespace}"),
            None => String::new(),
        };
        self.call.tell(&format!("no objects found{place}"));
    }

    /// Objects by name; one that is missing does not hide the others.
    async fn named(&self, named: &[(&'static Kind, String)]) -> Result<Exit, CliError> {
        let several = named
            .iter()
            .any(|(kind, _)| kind.plural != named[0].0.plural);
        let mut tables: Vec<(&'static Kind, Columns, Vec<Row>)> = Vec::new();
        let mut objects = Vec::new();
        let mut trouble = Trouble::default();
        for (kind, name) in named {
            let got = self
                .server
                .get(kind, &self.server.namespace, name, self.form())
                .await;
            let answer = match got {
                Ok(answer) => answer,
                Err(error) if error.is_not_found() => {
                    if !self.arguments.ignore_not_found {
                        trouble.add(self.server.failed(error));
                    }
                    continue;
                }
                Err(error) => return Err(self.server.failed(error)),
            };
            if self.form() == Form::Objects {
                objects.push(self.object(answer));
                continue;
            }
            let prefix = if several {
                kind.full("")
            } else {
                String::new()
            };
            let columns = self.columns(&answer, &prefix)?;
            let rows = columns.rows(&answer);
            match tables
                .last_mut()
                .filter(|(last, ..)| last.plural == kind.plural)
            {
                Some((_, _, all)) => all.extend(rows),
                None => tables.push((kind, columns, rows)),
            }
        }
        let texts: Vec<_> = tables
            .into_iter()
            .map(|(_, columns, rows)| {
                Table::under(&columns, rows).render(self.call.headers(), self.call.styles())
            })
            .collect();
        terminal::print(&texts.join("\n"))?;
        match (objects.len(), named.len()) {
            (0, _) => {}
            (1, 1) => {
                output::tree(&objects[0], &self.format)?;
            }
            _ => {
                output::tree(&output::list(objects), &self.format)?;
            }
        }
        trouble.end(self.call)
    }

    /// What there is, and each change of it.
    async fn watch(&self, targets: &Targets) -> Result<Exit, CliError> {
        let (kind, selection) = match targets {
            Targets::All(kinds) if kinds.len() == 1 => (kinds[0], self.selection()),
            Targets::Named(named) if named.len() == 1 => {
                let (kind, name) = &named[0];
                // A name that is not there is an error here too, not a silence.
                let found = self.server.find(kind, &self.server.namespace, name).await;
                if found.map_err(|error| self.server.failed(error))?.is_none()
                    && !self.arguments.ignore_not_found
                {
                    return Err(CliError::new(
                        Exit::NotFound,
                        format!(
                            "there is no {} in namespace {}",
                            kind.brief(name),
                            self.server.namespace
                        ),
                    ));
                }
                (*kind, Selection::of_name(&self.server.namespace, name))
            }
            _ => {
                return Err(CliError::usage(
                    "only one kind or one object can be watched at a time",
                ));
            }
        };
        let patience = self.call.global.timeout;
        let mut watch = Watch::new(self.server, kind, selection, self.form(), patience);
        let mut view = View::new(self);
        while let Some(seen) = watch
            .next()
            .await
            .map_err(|error| self.server.failed(error))?
        {
            let shown = match self.form() {
                Form::Table => view.show(&seen)?,
                Form::Objects => self.print_objects(seen, kind)?,
            };
            if shown == Reader::Left {
                break;
            }
        }
        Ok(Exit::Done)
    }

    fn print_objects(&self, seen: Seen, kind: &Kind) -> Result<Reader, CliError> {
        let objects: Vec<_> = match seen {
            Seen::All(list) => items(list, kind).collect(),
            Seen::One(_, object) => vec![object],
        };
        let mut reader = Reader::Reads;
        for object in objects {
            let object = self.object(object);
            if self.format == Format::Yaml {
                reader = terminal::print("---\n")?;
            }
            if reader == Reader::Reads {
                reader = output::tree(&object, &self.format)?;
            }
            if matches!(self.format, Format::JsonPath(_)) && reader == Reader::Reads {
                reader = terminal::print("\n")?;
            }
        }
        Ok(reader)
    }
}

/// Items of a list with what an API leaves out there.
fn items(mut list: Value, kind: &Kind) -> impl Iterator<Item = Value> {
    let items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let (api_version, kind) = (kind.api_version(), kind.kind);
    items.into_iter().map(move |mut object| {
        if let Some(map) = object.as_object_mut() {
            map.entry("apiVersion")
                .or_insert_with(|| api_version.clone().into());
            map.entry("kind").or_insert_with(|| kind.into());
        }
        object
    })
}

/// Errors that do not end the command.
#[derive(Debug, Default)]
struct Trouble {
    errors: Vec<CliError>,
}

impl Trouble {
    fn add(&mut self, error: CliError) {
        self.errors.push(error);
    }

    /// The last is the command's own, the others are said before it.
    fn end(mut self, call: &Call) -> Result<Exit, CliError> {
        let Some(last) = self.errors.pop() else {
            return Ok(Exit::Done);
        };
        for error in &self.errors {
            terminal::tell(&error.render(call.program, call.detail()));
        }
        Err(last)
    }
}

/// A table that is drawn anew on a terminal, and goes on line by line elsewhere.
struct View<'a, 'b> {
    getting: &'a Getting<'b>,
    columns: Option<Columns>,
    rows: BTreeMap<(String, String), Row>,
    /// Lines on the terminal that the next drawing replaces.
    drawn: usize,
}

impl<'a, 'b> View<'a, 'b> {
    fn new(getting: &'a Getting<'b>) -> Self {
        Self {
            getting,
            columns: None,
            rows: BTreeMap::new(),
            drawn: 0,
        }
    }

    fn show(&mut self, seen: &Seen) -> Result<Reader, CliError> {
        let answer = match seen {
            Seen::All(answer) | Seen::One(_, answer) => answer,
        };
        let begins = self.columns.is_none();
        if begins {
            self.columns = Some(self.getting.columns(answer, "")?);
        }
        let columns = self.columns.clone().unwrap_or_default();
        let rows = columns.rows(answer);
        let mut deleted = Vec::new();
        match seen {
            Seen::All(_) => {
                self.rows = rows
                    .iter()
                    .map(|row| (row.key.clone(), row.clone()))
                    .collect();
            }
            Seen::One(Change::Deleted, _) => {
                for row in &rows {
                    self.rows.remove(&row.key);
                    deleted.push(row.key.1.clone());
                }
            }
            Seen::One(..) => {
                self.rows
                    .extend(rows.iter().map(|row| (row.key.clone(), row.clone())));
            }
        }
        let whole = Table::under(&columns, self.rows.values().cloned());
        let height = terminal::height().filter(|height| whole.len() + 2 < *height);
        match height {
            Some(_) => self.draw(&whole),
            None => self.append(&Table::under(&columns, rows), &whole, &deleted, begins),
        }
    }

    fn draw(&mut self, table: &Table) -> Result<Reader, CliError> {
        let call = self.getting.call;
        let text = table.render(call.headers(), call.styles());
        let back = match self.drawn {
            0 => String::new(),
            lines => format!("\u{1b}[{lines}F\u{1b}[J"),
        };
        self.drawn = text.lines().count();
        terminal::print(&(back + &text))
    }

    fn append(
        &self,
        news: &Table,
        whole: &Table,
        deleted: &[String],
        begins: bool,
    ) -> Result<Reader, CliError> {
        let call = self.getting.call;
        for name in deleted {
            call.tell(&format!("{name} was deleted"));
        }
        if !deleted.is_empty() {
            return Ok(Reader::Reads);
        }
        let headers = if begins {
            call.headers()
        } else {
            Headers::Hidden
        };
        terminal::print(&news.render_beside(whole, headers, call.styles()))
    }
}
