//! `relayctl context`: which control planes there are, which one is talked to, and which one is kept for next time.

use clap::{Args, Subcommand};
use kube::config::Kubeconfig;
use serde_json::{Value, json};

use crate::call::Call;
use crate::connect;
use crate::context::{self, Chosen, LOCAL};
use crate::error::CliError;
use crate::output::table::Table;
use crate::output::{self, CLI_VERSION};
use crate::terminal;
use api::exit::Exit;

/// Arguments of `relayctl context`.
#[derive(Debug, Args)]
pub(crate) struct ContextArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Lists `local` and the contexts of the kubeconfig
    Ls,
    /// Keeps a context for next time
    Use {
        /// `local`, or a context of the kubeconfig
        name: String,
    },
    /// Shows which one is talked to, and why
    Show,
}

/// Runs one of them.
pub(crate) fn run(call: &Call, arguments: ContextArguments) -> Result<Exit, CliError> {
    match arguments.action {
        Action::Ls => list(call),
        Action::Use { name } => keep(call, &name),
        Action::Show => show(call),
    }
}

/// A context in words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Described {
    name: String,
    address: String,
    namespace: String,
}

fn local(call: &Call) -> Result<Described, CliError> {
    Ok(Described {
        name: LOCAL.to_owned(),
        address: call.places()?.daemon().join("sock").display().to_string(),
        namespace: "default".to_owned(),
    })
}

fn clusters(kubeconfig: &Kubeconfig) -> impl Iterator<Item = Described> {
    kubeconfig.contexts.iter().map(|named| {
        let context = named.context.as_ref();
        let cluster = context.map(|context| context.cluster.as_str());
        let server = kubeconfig
            .clusters
            .iter()
            .find(|known| Some(known.name.as_str()) == cluster)
            .and_then(|known| known.cluster.as_ref()?.server.clone());
        Described {
            name: named.name.clone(),
            address: server.unwrap_or_else(|| "<unknown>".to_owned()),
            namespace: context
                .and_then(|context| context.namespace.clone())
                .unwrap_or_else(|| "default".to_owned()),
        }
    })
}

fn list(call: &Call) -> Result<Exit, CliError> {
    let chosen = call.context()?;
    let mut all = vec![local(call)?];
    match connect::kubeconfig() {
        Ok(kubeconfig) => all.extend(clusters(&kubeconfig)),
        // A laptop without any cluster.
        Err(error) if error.exit == Exit::NotFound => {}
        Err(error) => return Err(error),
    }
    if call.format().is_table() {
        let mut table = Table::new(&["CURRENT", "NAME", "ADDRESS", "NAMESPACE"]);
        for context in all {
            let current = if context.name == chosen.name { "*" } else { "" };
            table.push(vec![
                current.to_owned(),
                context.name,
                context.address,
                context.namespace,
            ]);
        }
        terminal::print(&table.render(call.headers(), call.styles()))?;
    } else {
        let items: Vec<_> = all
            .iter()
            .map(|context| document(context, &chosen))
            .collect();
        let document = json!({"apiVersion": CLI_VERSION, "kind": "ContextList", "items": items});
        output::tree(&document, &call.format())?;
    }
    Ok(Exit::Done)
}

fn document(context: &Described, chosen: &Chosen) -> Value {
    json!({
        "name": context.name,
        "address": context.address,
        "namespace": context.namespace,
        "current": context.name == chosen.name,
    })
}

fn find(call: &Call, name: &str) -> Result<Described, CliError> {
    if name == LOCAL {
        return local(call);
    }
    let kubeconfig = connect::kubeconfig()?;
    clusters(&kubeconfig)
        .find(|context| context.name == name)
        .ok_or_else(|| {
            CliError::new(Exit::NotFound, format!("there is no context `{name}`"))
                .hint("`relayctl context ls` lists them")
        })
}

fn keep(call: &Call, name: &str) -> Result<Exit, CliError> {
    let context = find(call, name)?;
    context::keep(&call.places()?, name)?;
    call.tell(&format!(
        "context {} is used from now on ({})",
        context.name, context.address
    ));
    let now = call.context()?;
    if now.name != name {
        call.tell(&format!(
            "but {} says `{}`, which wins",
            now.source.describe(),
            now.name
        ));
    }
    Ok(Exit::Done)
}

fn show(call: &Call) -> Result<Exit, CliError> {
    let chosen = call.context()?;
    let context = find(call, &chosen.name)?;
    if call.format().is_table() {
        let text = format!(
            "{} ({}), {}, namespace {}\n",
            context.name,
            chosen.source.describe(),
            context.address,
            context.namespace
        );
        terminal::print(&output::visible(&text))?;
    } else {
        let mut document = document(&context, &chosen);
        document["apiVersion"] = CLI_VERSION.into();
        document["kind"] = "Context".into();
        document["source"] = json!(chosen.source);
        output::tree(&document, &call.format())?;
    }
    Ok(Exit::Done)
}
