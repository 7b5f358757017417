//! The state between commands: the session, the history, the last exit code.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quenda_client::{Client, Error, SessionOptions};
use quenda_proto::ErrorCode;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::connection::ConnectionArgs;

use super::error::CONNECTION_LOSS;
use super::events::{self, Taste};
use super::{CommandError, Output, Session, dispatch, help, prompt, tokens, usage};

/// Entries that `history` shows besides the current one, as zkCli does.
const HISTORY_SHOWN: usize = 10;
/// How long a command may take to end after Ctrl-C before it is dropped.
const GRACE: Duration = Duration::from_secs(1);
/// How long the last events of a session are waited for.
const LAST_EVENTS: Duration = Duration::from_secs(1);
/// How long the first prompt waits for a connection.
const SETTLING: Duration = Duration::from_millis(500);
/// How long the end of a session may take.
const CLOSING: Duration = Duration::from_secs(2);

/// What the shell was started with.
#[derive(Debug)]
pub struct Manner {
    /// As zkCli in everything: its commands only, no session closed at the end of input.
    pub zkcli: bool,
    /// Refuse commands that change something.
    pub read_only: bool,
    /// No "Connecting to", no events of the connection.
    pub quiet: bool,
    /// How long to wait for the connection before the first command; not at all without it.
    pub wait: Option<Duration>,
}

/// Whether the shell goes on after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It does.
    More,
    /// `quit`.
    End,
}

/// The shell.
#[derive(Debug)]
pub struct Shell {
    manner: Manner,
    options: Options,
    session: Session,
    printer: JoinHandle<()>,
    print_watches: Arc<AtomicBool>,
    history: Vec<String>,
    code: u8,
    out: Output,
}

/// How sessions are opened, but for their servers.
#[derive(Debug, Clone)]
pub struct Options {
    /// TLS and identities.
    pub connection: ConnectionArgs,
    /// Wanted session timeout.
    pub timeout: Duration,
    /// Whether a server without a quorum will do.
    pub read_only: bool,
}

impl Options {
    fn with(&self, servers: &str) -> Result<SessionOptions, CommandError> {
        self.connection
            .session_options(servers, self.timeout, self.read_only)
            .map_err(|error| CommandError::failed(format!("{error:#}")))
    }
}

impl Shell {
    /// Opens the first session. With [`Manner::wait`] it is connected when this returns.
    pub async fn start(
        manner: Manner,
        options: Options,
        servers: &str,
        mut out: Output,
    ) -> Result<Self, CommandError> {
        if !manner.quiet {
            out.line(&format!("Connecting to {servers}"))?;
        }
        let print_watches = Arc::new(AtomicBool::new(true));
        let taste = Taste {
            print: Arc::clone(&print_watches),
            quiet: manner.quiet,
        };
        let (session, printer) = open(&options, servers, taste, &out)?;
        let shell = Shell {
            manner,
            options,
            session,
            printer,
            print_watches,
            history: Vec::new(),
            code: 0,
            out,
        };
        shell.wait().await?;
        Ok(shell)
    }

    /// Waits for the connection, if that was asked for.
    async fn wait(&self) -> Result<(), CommandError> {
        let Some(limit) = self.manner.wait else {
            return Ok(());
        };
        match self.session.client().wait_connected(limit).await {
            Ok(_) => Ok(()),
            Err(error) => Err(CommandError::failed(format!(
                "KeeperErrorCode = ConnectionLoss: {error}. Check the servers ({}), and with `quenda status` whether \
                 they serve",
                self.session.servers()
            ))),
        }
    }

    /// Gives the connection a moment, so that the first prompt tells a state that lasts.
    pub async fn settle(&self) {
        // Without a connection the prompt says so.
        drop(self.session.client().wait_connected(SETTLING).await);
    }

    /// The session of the moment.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// zkCli's greeting, with what it says of its line editor.
    pub fn welcome(&mut self, editor: bool) -> Result<(), CommandError> {
        if self.manner.quiet {
            return Ok(());
        }
        let state = if editor { "enabled" } else { "disabled" };
        self.out
            .line(&format!("Welcome to ZooKeeper!\nJLine support is {state}"))
    }

    /// Where results go.
    pub fn out(&mut self) -> &mut Output {
        &mut self.out
    }

    /// How the shell was started.
    pub fn manner(&self) -> &Manner {
        &self.manner
    }

    /// Number of the next line.
    pub fn count(&self) -> usize {
        self.history.len()
    }

    /// Exit code of the last command.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// zkCli's prompt.
    pub fn prompt(&self) -> String {
        prompt::text(&self.session, self.count())
    }

    /// Runs one line of input. Empty lines and, but for zkCli, comments are passed over.
    pub async fn line(&mut self, line: &str) -> Next {
        let comment = !self.manner.zkcli && line.trim_start().starts_with('#');
        if line.trim().is_empty() || comment {
            return Next::More;
        }
        self.history.push(line.to_owned());
        self.execute(&tokens::split(line)).await
    }

    /// The words of the line that `redo` names, which takes the place of `redo` in the history.
    fn redo(&mut self, number: &str) -> Result<Vec<String>, CommandError> {
        let earlier = self.earlier(number)?;
        let words = tokens::split(&earlier);
        if let Some(current) = self.history.last_mut() {
            *current = earlier;
        }
        Ok(words)
    }

    /// The line that `redo` names.
    fn earlier(&self, number: &str) -> Result<String, CommandError> {
        let number: i64 = number.parse().map_err(|_| {
            CommandError::failed("redo needs the number of an earlier command; see history")
        })?;
        let current = self.history.len().saturating_sub(1);
        let line = usize::try_from(number)
            .ok()
            .filter(|index| *index < current)
            .and_then(|index| self.history.get(index))
            .ok_or_else(|| CommandError::failed("Command index out of range"))?;
        if tokens::split(line).first().map(String::as_str) == Some("redo") {
            return Err(CommandError::failed("No redoing redos"));
        }
        Ok(line.clone())
    }

    /// Runs one command, or with `redo` an earlier one, shows why it failed, and keeps its exit code. Ctrl-C ends it.
    pub async fn execute(&mut self, words: &[String]) -> Next {
        let number = match words {
            [command, number, ..] if command == "redo" => number,
            words => return self.perform(words).await,
        };
        match self.redo(number) {
            Ok(earlier) => {
                let next = self.perform(&earlier).await;
                if self.manner.zkcli {
                    // Whatever came of it.
                    self.code = 0;
                }
                next
            }
            Err(error) => {
                self.fail(&error);
                Next::More
            }
        }
    }

    async fn perform(&mut self, words: &[String]) -> Next {
        if words.first().map(String::as_str) == Some("quit")
            || (!self.manner.zkcli && words.first().map(String::as_str) == Some("exit"))
        {
            self.close().await;
            return Next::End;
        }
        let result = self.interruptible(words).await;
        let result = result.and_then(|()| self.out.flush());
        match result {
            Ok(()) => {
                self.code = 0;
                Next::More
            }
            Err(error) => {
                self.fail(&error);
                self.say_why(&error).await;
                // Nobody reads what further commands would show.
                if matches!(error, CommandError::Output(_)) {
                    Next::End
                } else {
                    Next::More
                }
            }
        }
    }

    /// Shows why a command failed, and keeps its exit code.
    fn fail(&mut self, error: &CommandError) {
        self.code = error.exit_code();
        if let CommandError::NotFound(_) = error
            && self.manner.zkcli
        {
            self.out.complain(&usage::block());
        }
        self.complain(error);
        if let CommandError::NotFound(_) = error
            && !self.manner.zkcli
        {
            self.out.complain("Type help for the list of commands");
        }
    }

    /// Shows why something failed. A reader that has ended wants to hear nothing.
    pub fn complain(&self, error: &CommandError) {
        match error {
            CommandError::Output(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe => {}
            // Said twice, as there.
            CommandError::NotFound(name) if self.manner.zkcli => {
                let text = format!("Command not found: Command not found {name}");
                self.out.complain(&text);
            }
            error => self.out.complain(&error.to_string()),
        }
    }

    /// Behind zkCli's word for what is wrong with the connection: what it is, and what to do.
    async fn say_why(&self, error: &CommandError) {
        if self.manner.zkcli {
            return;
        }
        match error.keeper_code() {
            Some(CONNECTION_LOSS) => {}
            Some(code) if code == ErrorCode::AuthFailed.code() => {
                if let Err(why) = self.session.client().wait_connected(Duration::ZERO).await {
                    self.out
                        .complain(&format!("{why}. Check scheme and secret, then `connect`"));
                }
                return;
            }
            _ => return,
        }
        let why = match self.session.client().wait_connected(Duration::ZERO).await {
            Ok(_) => "The connection broke and is there again: repeat a read; of a write look first whether it was done"
                .to_owned(),
            Err(error) => {
                let cause = match error {
                    Error::NotConnected { reason, .. } => reason,
                    other => other.to_string(),
                };
                format!(
                    "{cause}. Check the servers ({}), and with `quenda status` whether they serve",
                    self.session.servers()
                )
            }
        };
        self.out.complain(&why);
    }

    async fn interruptible(&mut self, words: &[String]) -> Result<(), CommandError> {
        let interrupted = self.out.interrupted();
        let command = self.run(words);
        tokio::pin!(command);
        tokio::select! {
            result = &mut command => return result,
            () = interrupted => {}
        }
        match tokio::time::timeout(GRACE, command).await {
            Ok(result) => result,
            Err(_) => Err(CommandError::Interrupted),
        }
    }

    async fn run(&mut self, words: &[String]) -> Result<(), CommandError> {
        let Some((name, args)) = words.split_first() else {
            return Ok(());
        };
        let spec = usage::find(name).filter(|spec| spec.in_zkcli || !self.manner.zkcli);
        let spec = spec.ok_or_else(|| CommandError::NotFound(name.clone()))?;
        if self.manner.read_only && spec.writes {
            return Err(CommandError::failed(format!(
                "{name} changes something, and this shell was started with --read-only: start one without it"
            )));
        }
        match name.as_str() {
            "help" => return help::show(args, &mut self.out),
            "history" => self.show_history()?,
            "printwatches" => self.printwatches(args)?,
            "connect" => self.connect(args).await?,
            _ => {}
        }
        if !self.session.is_alive() {
            return self.not_connected();
        }
        match name.as_str() {
            "history" | "printwatches" | "connect" | "redo" => Ok(()),
            "close" => {
                self.close().await;
                Ok(())
            }
            _ => dispatch::run(&self.session, name, args, &mut self.out).await,
        }
    }

    fn not_connected(&mut self) -> Result<(), CommandError> {
        if self.out.wants_json() {
            return Err(CommandError::failed(
                "Not connected: the session has ended; `connect` opens another one",
            ));
        }
        self.out.line("Not connected")
    }

    /// In one-shot mode there is no history, and zkCli shows the line 0 as null.
    fn show_history(&mut self) -> Result<(), CommandError> {
        let current = self.history.len().saturating_sub(1);
        let first = current.saturating_sub(HISTORY_SHOWN);
        let entry = |index: usize| self.history.get(index).map(String::as_str);
        if self.out.wants_json() {
            let entries: Vec<Value> = (first..=current)
                .filter_map(|index| Some(json!({ "number": index, "line": entry(index)? })))
                .collect();
            return self.out.json(&json!({ "history": entries }));
        }
        let text: Vec<String> = (first..=current)
            .map(|index| format!("{index} - {}", entry(index).unwrap_or("null")))
            .collect();
        self.out.line(&text.join("\n"))
    }

    fn printwatches(&mut self, args: &[String]) -> Result<(), CommandError> {
        match args.first() {
            Some(word) => self.print_watches.store(word == "on", Ordering::Relaxed),
            None => {
                let on = self.print_watches.load(Ordering::Relaxed);
                if self.out.wants_json() {
                    return self.out.json(&json!({ "printwatches": on }));
                }
                let word = if on { "on" } else { "off" };
                self.out.line(&format!("printwatches is {word}"))?;
            }
        }
        Ok(())
    }

    /// Ends the session and opens another one, with other servers if some are named.
    async fn connect(&mut self, args: &[String]) -> Result<(), CommandError> {
        let servers = args
            .first()
            .map_or(self.session.servers(), String::as_str)
            .to_owned();
        // What cannot be a connect string leaves the session as it is.
        self.options.with(&servers)?;
        if self.session.is_alive() {
            self.close().await;
        }
        let taste = Taste {
            print: Arc::clone(&self.print_watches),
            quiet: self.manner.quiet,
        };
        (self.session, self.printer) = open(&self.options, &servers, taste, &self.out)?;
        self.wait().await
    }

    /// Ends the session on the server, and lets its last events be printed.
    pub async fn close(&mut self) {
        let client = self.session.client().clone();
        match tokio::time::timeout(CLOSING, client.close()).await {
            Ok(Ok(())) => {}
            // The session ends by its timeout then; there is nothing to be done about it here.
            Ok(Err(error)) => tracing::debug!(%error, "closing the session failed"),
            Err(_) => tracing::debug!("closing the session took too long"),
        }
        self.drain().await;
    }

    async fn drain(&mut self) {
        // A session that does not end in time has no more events of interest.
        drop(tokio::time::timeout(LAST_EVENTS, &mut self.printer).await);
    }

    /// The end of the input: the session is closed without a word. zkCli leaves it to its timeout.
    pub async fn finish(mut self) -> u8 {
        if !self.manner.zkcli && self.session.is_alive() {
            self.print_watches.store(false, Ordering::Relaxed);
            self.close().await;
        }
        self.code
    }
}

fn open(
    options: &Options,
    servers: &str,
    taste: Taste,
    out: &Output,
) -> Result<(Session, JoinHandle<()>), CommandError> {
    let (client, events) = Client::open(options.with(servers)?);
    let session = Session::new(client, servers);
    let printer = tokio::spawn(events::follow(session.clone(), events, taste, out.clone()));
    Ok((session, printer))
}
