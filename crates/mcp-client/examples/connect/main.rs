//! Connects to any MCP server, lists what it has, calls its tools and prints what happens.
//!
//! ```text
//! cargo run --example connect -- --list stdio npx -y @modelcontextprotocol/server-everything
//! cargo run --example connect -- --json --call echo '{"message":"hi"}' http http://127.0.0.1:3001/mcp
//! ```

#![expect(clippy::print_stderr, reason = "a program for the shell")]

mod changes;
mod elicit;
mod options;
mod output;
mod text;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use mcp_client::model::{
    LoggingLevel, Paginated, ProgressNotificationParams, ProtocolVersion, Root, ServerFeature, WithMeta,
};
use mcp_client::{
    Client, ClientEvent, Endpoint, Error, HttpServer, List, ListKind, ListedItem, RawJson, StdioServer,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use options::{Mode, Options, Target, USAGE, Usage};
use output::{Failure, Output, Step};

/// Closing is bounded by itself, whatever `--timeout` says.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of the program waits for threads that are stuck, such as one that reads a terminal.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(options) => options,
        Err(usage) => return print_usage(&usage),
    };
    let endpoint = match endpoint(&options.target) {
        Ok(endpoint) => endpoint,
        Err(mistake) => return print_usage(&Usage::Mistake(mistake)),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let ok = runtime.block_on(async {
        tokio::select! {
            ok = run(&options, endpoint) => ok,
            // What was begun is dropped, and the server with it.
            () = interrupted() => false,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does the steps. Returns whether all went well.
async fn run(options: &Options, endpoint: Endpoint) -> bool {
    let output = Arc::new(Output::new(options.json));
    let step = Step::new("connect");
    let client = match connect(options, endpoint, &output).await {
        Ok(client) => client,
        Err(failure) => return output.step::<()>(&step, &Err(failure)),
    };
    let mut ok = output.step(&step, &Ok(&client.server().raw));
    let _changes = changes::follow(&client, options, &output).await;

    if options.list {
        ok &= lists(&client, options, &output).await;
    }
    ok &= calls(&client, options, &output).await;

    let step = Step::new("close");
    let closed = tokio::time::timeout(CLOSE_TIMEOUT, client.close()).await;
    let outcome = closed.map(|_| Value::Null).map_err(|_| Failure::timeout("close", CLOSE_TIMEOUT, false));
    ok & output.step(&step, &outcome)
}

/// Waits for a signal that asks the program to end. The server is in a process group of its own and does not get it.
async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut interrupt), Ok(mut terminate)) =
            (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

fn print_usage(usage: &Usage) -> ExitCode {
    match usage {
        Usage::Help => {
            eprint!("{USAGE}");
            ExitCode::SUCCESS
        }
        Usage::Mistake(mistake) => {
            eprintln!("connect: {mistake}\n`--help` shows what can be said.");
            ExitCode::from(2)
        }
    }
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
    let mode = match options.mode {
        Mode::Auto => mcp_client::Mode::Auto,
        Mode::Legacy => mcp_client::Mode::Legacy,
        Mode::Modern => mcp_client::Mode::Pinned(ProtocolVersion::LATEST),
    };
    let mut builder = Client::builder("mcp-client-connect", env!("CARGO_PKG_VERSION"))
        .mode(mode)
        .initialize_timeout(options.timeout)
        .request_timeout(options.timeout)
        .roots(working_directory());
    if let Some(how) = &options.elicit {
        builder = builder.on_elicitation(elicit::Answers { how: how.clone(), output: Arc::clone(output) });
    }
    let printer = Arc::clone(output);
    let connecting = builder.on_event(move |event| print_event(&printer, event)).connect(endpoint);
    match tokio::time::timeout(options.timeout, connecting).await {
        Ok(Ok(client)) => {
            if let Some(how) = options.elicit.clone() {
                tokio::spawn(elicit::continue_calls(client.events(), client.desk().clone(), how));
            }
            Ok(client)
        }
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(Failure::timeout("connect", options.timeout, false)),
    }
}

/// The one root that is offered: where the program runs.
fn working_directory() -> Option<Root> {
    use std::fmt::Write as _;
    let path = std::env::current_dir().ok()?;
    let mut uri = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").ok()?;
        }
    }
    Some(Root::new(uri))
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
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    let step = Step::new(op);
    let outcome = match tokio::time::timeout(options.timeout, joined(list, member)).await {
        Ok(joined) => joined,
        Err(_) => Err(Failure::timeout(op, options.timeout, true)),
    };
    output.step(&step, &outcome)
}

/// The first page's object with the items of all pages, each member as the server wrote it.
async fn joined<R>(list: List<R>, member: &str) -> Result<BTreeMap<String, Box<RawValue>>, Failure>
where
    R: Paginated + WithMeta + Serialize + Clone + Send + Sync + 'static,
    R::Result: ListedItem + Send + 'static,
{
    let mut pages = list.pages();
    let mut joined = None;
    let mut items: Vec<Box<RawValue>> = Vec::new();
    while let Some(page) = pages.next_raw().await? {
        // The client has read a cursor from it, so it is an object.
        let Ok(mut page) = page.parse::<BTreeMap<String, Box<RawValue>>>() else { continue };
        if let Some(more) = page.remove(member) {
            // Some servers write an empty list as `null`.
            let more: Option<Vec<Box<RawValue>>> = serde_json::from_str(more.get())
                .map_err(|_| Failure::peer_misbehaved(format!("{member} is no list")))?;
            items.extend(more.into_iter().flatten());
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
    output.print(&json!({
        "event": "progress",
        "index": index,
        "progress": number(update.progress),
        "total": update.total.map(number),
        "message": update.message,
    }));
}

/// Whole numbers as servers usually write them: without a fraction.
fn number(value: f64) -> Value {
    let whole = value as i64;
    if whole as f64 == value { json!(whole) } else { json!(value) }
}

/// The line of a log message, its data as the server wrote it.
#[derive(Serialize)]
struct LogLine<'a> {
    event: &'static str,
    level: &'a LoggingLevel,
    logger: Option<&'a str>,
    data: &'a RawValue,
}

fn print_event(output: &Output, event: ClientEvent) {
    match event {
        ClientEvent::Diagnostic(diagnostic) => {
            let mut message = diagnostic.message;
            if diagnostic.count > 1 {
                message += &format!(" ({} times, {} in all)", diagnostic.count, diagnostic.total);
            }
            output.diagnostic(diagnostic.kind.as_str(), &message);
        }
        ClientEvent::ListChanged(list) => {
            let list = match list {
                ListKind::Prompts => "prompts",
                ListKind::Resources => "resources",
                _ => "tools",
            };
            output.print(&json!({ "event": "list_changed", "list": list }));
        }
        ClientEvent::Log(log) => output.print(&LogLine {
            event: "log",
            level: &log.level,
            logger: log.logger.as_deref(),
            data: &log.data,
        }),
        _ => {}
    }
}
