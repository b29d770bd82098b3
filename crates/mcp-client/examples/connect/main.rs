//! Connects to any MCP server, lists what it has, calls its tools and prints what happens.
//!
//! ```text
//! cargo run --example connect -- --list stdio npx -y @modelcontextprotocol/server-everything
//! cargo run --example connect -- --json --call echo '{"message":"hi"}' http http://127.0.0.1:3001/mcp
//! ```

#![expect(clippy::print_stderr, reason = "a program for the shell")]
#![expect(clippy::indexing_slicing, reason = "members of JSON objects made right there")]

mod elicit;
mod options;
mod output;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::model::{Paginated, ProgressNotificationParams, Root, ServerFeature, WithMeta};
use mcp_client::{
    Client, ClientEvent, Endpoint, Error, HttpServer, List, ListKind, ListedItem, RawJson, StdioServer,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use options::{Mode, Options, Target, USAGE};
use output::{Failure, Output, Step};

/// Closing is bounded by itself, whatever `--timeout` says.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(mistake) => return usage(&mistake),
    };
    let output = Arc::new(Output::new(options.json));
    let endpoint = match endpoint(&options.target) {
        Ok(endpoint) => endpoint,
        Err(mistake) => return usage(&mistake),
    };

    let step = Step::new("connect");
    let client = match connect(&options, endpoint, &output).await {
        Ok(client) => client,
        Err(failure) => {
            output.step::<()>(&step, &Err(failure));
            return ExitCode::FAILURE;
        }
    };
    let mut ok = output.step(&step, &Ok(&client.server().raw));

    if options.list {
        ok &= lists(&client, &options, &output).await;
    }
    ok &= calls(&client, &options, &output).await;

    let step = Step::new("close");
    let closed = tokio::time::timeout(CLOSE_TIMEOUT, client.close()).await;
    let outcome = closed.map(|_| Value::Null).map_err(|_| Failure::timeout("close", CLOSE_TIMEOUT, false));
    ok &= output.step(&step, &outcome);
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(mistake: &str) -> ExitCode {
    eprintln!("{mistake}\n\n{USAGE}");
    ExitCode::from(2)
}

fn endpoint(target: &Target) -> Result<Endpoint, String> {
    match target {
        Target::Stdio { command, args, env } => {
            let mut server = StdioServer::new(command).args(args);
            for (name, value) in env {
                server = server.env(name, value);
            }
            Ok(server.into())
        }
        Target::Http { url, headers } => {
            let mut server = HttpServer::new(url).map_err(|error| error.to_string())?;
            for (name, value) in headers {
                server = server.header(name, value).map_err(|error| error.to_string())?;
            }
            Ok(server.into())
        }
    }
}

async fn connect(options: &Options, endpoint: Endpoint, output: &Arc<Output>) -> Result<Client, Failure> {
    if options.mode == Mode::Modern {
        return Err(Failure {
            kind: mcp_client::ErrorKind::UnsupportedVersion.as_str(),
            message: "this client does not speak 2026-07-28".to_owned(),
            code: None,
            data: Value::Null,
            outcome_unknown: false,
        });
    }
    let mut builder = Client::builder("mcp-client-connect", env!("CARGO_PKG_VERSION"))
        .initialize_timeout(options.timeout)
        .request_timeout(options.timeout)
        .roots(working_directory());
    if let Some(how) = &options.elicit {
        builder = builder.on_elicitation(elicit::Answers { how: how.clone(), output: Arc::clone(output) });
    }
    let printer = Arc::clone(output);
    let connecting = builder.on_event(move |event| print_event(&printer, event)).connect(endpoint);
    match tokio::time::timeout(options.timeout, connecting).await {
        Ok(connected) => connected.map_err(Failure::from),
        Err(_) => Err(Failure::timeout("connect", options.timeout, false)),
    }
}

/// The one root that is offered: where the program runs.
fn working_directory() -> Option<Root> {
    let path = std::env::current_dir().ok()?;
    Some(Root::new(format!("file://{}", path.to_str()?.replace('%', "%25").replace(' ', "%20"))))
}

/// Lists what the server declared. Returns whether all went well.
async fn lists(client: &Client, options: &Options, output: &Output) -> bool {
    let declared = &client.server().capabilities;
    let mut ok = true;
    if declared.declares(ServerFeature::Tools) {
        ok &= list("list_tools", "tools", client.list_tools(), options, output).await;
    }
    if declared.declares(ServerFeature::Resources) {
        ok &= list("list_resources", "resources", client.list_resources(), options, output).await;
    }
    if declared.declares(ServerFeature::Prompts) {
        ok &= list("list_prompts", "prompts", client.list_prompts(), options, output).await;
    }
    ok
}

async fn list<R>(op: &'static str, member: &str, list: List<R>, options: &Options, output: &Output) -> bool
where
    R: Paginated + WithMeta + serde::Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    let step = Step::new(op);
    let outcome = match tokio::time::timeout(options.timeout, joined(list, member)).await {
        Ok(joined) => joined.map_err(Failure::from),
        Err(_) => Err(Failure::timeout(op, options.timeout, false)),
    };
    output.step(&step, &outcome)
}

/// The first page's object with the items of all pages, each member as the server wrote it.
async fn joined<R>(list: List<R>, member: &str) -> Result<BTreeMap<String, Box<RawValue>>, Error>
where
    R: Paginated + WithMeta + serde::Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    let mut pages = list.pages();
    let mut joined = None;
    let mut items: Vec<Box<RawValue>> = Vec::new();
    while let Some(page) = pages.next_raw().await? {
        // The client has read a cursor from it, so it is an object.
        let Ok(mut page) = page.parse::<BTreeMap<String, Box<RawValue>>>() else { continue };
        if let Some(more) = page.remove(member) {
            items.extend(serde_json::from_str::<Vec<Box<RawValue>>>(more.get()).unwrap_or_default());
        }
        page.remove("nextCursor");
        joined.get_or_insert(page);
    }
    let mut joined = joined.unwrap_or_default();
    if let Ok(items) = serde_json::value::to_raw_value(&items) {
        joined.insert(member.to_owned(), items);
    }
    Ok(joined)
}

/// Makes the calls. Returns whether all went well.
async fn calls(client: &Client, options: &Options, output: &Arc<Output>) -> bool {
    let mut ok = true;
    let mut running = tokio::task::JoinSet::new();
    for (index, (name, arguments)) in options.calls.iter().cloned().enumerate() {
        let client = client.clone();
        let output = Arc::clone(output);
        let call = async move {
            let step = Step::call(index, &name);
            let progress = Arc::clone(&output);
            let outcome: Result<RawJson, Error> = client
                .call_tool(name, arguments)
                .on_progress(move |update| print_progress(&progress, index, &update))
                .raw()
                .await;
            output.step(&step, &outcome.map_err(Failure::from))
        };
        if options.parallel {
            running.spawn(call);
        } else {
            ok &= call.await;
        }
    }
    while let Some(done) = running.join_next().await {
        ok &= done.unwrap_or(false);
    }
    ok
}

fn print_progress(output: &Output, index: usize, update: &ProgressNotificationParams) {
    output.event(
        "progress",
        json!({
            "index": index,
            "progress": number(update.progress),
            "total": update.total.map(number),
            "message": update.message,
        }),
    );
}

/// Whole numbers as servers usually write them: without a fraction.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { json!(whole) } else { json!(value) }
}

fn print_event(output: &Output, event: ClientEvent) {
    match event {
        ClientEvent::Diagnostic(diagnostic) => output
            .event("diagnostic", json!({ "kind": diagnostic.kind.as_str(), "message": diagnostic.message })),
        ClientEvent::ListChanged(list) => {
            let list = match list {
                ListKind::Prompts => "prompts",
                ListKind::Resources => "resources",
                _ => "tools",
            };
            output.event("list_changed", json!({ "list": list }));
        }
        ClientEvent::Log(log) => {
            output.event("log", json!({ "level": log.level, "logger": log.logger, "data": log.data }));
        }
        ClientEvent::Missed { events } => output.event(
            "diagnostic",
            json!({ "kind": "missed_events", "message": format!("{events} events were missed") }),
        ),
        _ => {}
    }
}
