//! `top`: who loads the servers, as they tell it themselves.

use std::time::Duration;

use quenda_client::word::WordError;
use quenda_server::load::LoadReport;
use serde_json::{Value, json};

use super::options::{Flag, flag, valued};
use super::output::terminal_width;
use super::top_table::{self, Key, Screen};
use super::{AtPath, CommandError, Output, Session, options, usage, words};

/// Options.
pub const FLAGS: &[Flag] = &[
    valued("n", "so many times; once where no terminal is"),
    valued("d", "seconds in between, 2 if not given"),
    valued("k", "heaviest by requests, bytes or latency"),
    valued(
        "r",
        "rows of each table; as many as the terminal has room for",
    ),
    flag("a", "every server of the list, not the connected one alone"),
];

/// The word that servers tell it by.
const WORD: &str = "qtop";
/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long there may be no connection at the start.
const CONNECT: Duration = Duration::from_secs(30);
/// Rows of a table where no terminal limits them.
const ROWS: usize = 20;
/// Back to the first place of the screen, and nothing behind it.
const CLEAR: &[u8] = b"\x1b[H\x1b[J";

/// Runs the command; `args` are the words behind its name.
pub async fn run(session: &Session, args: &[String], out: &mut Output) -> Result<(), CommandError> {
    let top = Top::parse(args, out)?;
    let interrupted = out.interrupted();
    tokio::select! {
        result = top.follow(session, out) => result,
        () = interrupted => Ok(()),
    }
}

struct Top {
    times: u64,
    pause: Duration,
    key: Key,
    rows: Option<usize>,
    all: bool,
}

impl Top {
    fn parse(args: &[String], out: &Output) -> Result<Top, CommandError> {
        let parsed = options::parse(FLAGS, args)?;
        let wrong = || usage::of("top");
        if !parsed.words.is_empty() {
            return Err(wrong());
        }
        let once = !out.is_terminal() || out.wants_json();
        let seconds = parsed.value("d").unwrap_or("2").parse::<f64>();
        let seconds = seconds
            .ok()
            .filter(|seconds| (0.1..=3600.0).contains(seconds));
        let rows = parsed.value("r").map(str::parse).transpose();
        Ok(Top {
            times: match parsed.value("n") {
                Some(text) => text.parse().map_err(|_| wrong())?,
                None if once && parsed.value("d").is_none() => 1,
                None => u64::MAX,
            },
            pause: Duration::from_secs_f64(seconds.ok_or_else(wrong)?),
            key: match parsed.value("k") {
                None => Key::Requests,
                Some(text) => Key::parse(text).ok_or_else(wrong)?,
            },
            rows: rows.map_err(|_| wrong())?,
            all: parsed.has("a"),
        })
    }

    async fn follow(&self, session: &Session, out: &mut Output) -> Result<(), CommandError> {
        session.client().wait_connected(CONNECT).await.anywhere()?;
        let mut left = self.times;
        let live = left > 1 && out.is_terminal() && !out.wants_json();
        while left > 0 {
            let answers = self.ask(session).await;
            if live {
                out.raw(CLEAR)?;
            }
            let failures = self.show(&answers, out)?;
            out.flush()?;
            left -= 1;
            if left == 0 || !live && failures == answers.len() {
                return match answers.into_iter().find_map(|(_, answer)| answer.err()) {
                    Some(error) if failures > 0 => Err(CommandError::failed(error)),
                    _ => Ok(()),
                };
            }
            tokio::time::sleep(self.pause).await;
        }
        Ok(())
    }

    /// What the servers say, each with its address.
    async fn ask(&self, session: &Session) -> Vec<(String, Result<LoadReport, String>)> {
        let client = session.client();
        let servers = match self.all {
            true => client.servers().to_vec(),
            false => client.server().into_iter().collect(),
        };
        let mut asking = Vec::new();
        for server in servers {
            let client = client.clone();
            let address = server.clone();
            let answer =
                tokio::spawn(async move { client.ask_word(&server, WORD, PATIENCE).await });
            asking.push((address, answer));
        }
        let mut answers = Vec::new();
        for (server, answer) in asking {
            let answer = answer.await.map_err(|error| error.to_string());
            let report = answer.and_then(|answer| read(&server, answer));
            answers.push((server, report));
        }
        answers
    }

    /// Returns how many servers have not answered.
    fn show(
        &self,
        answers: &[(String, Result<LoadReport, String>)],
        out: &mut Output,
    ) -> Result<usize, CommandError> {
        let fits = self.rows.is_none() && out.is_terminal();
        let screen = Screen::new(
            answers.len(),
            self.rows.unwrap_or(ROWS),
            fits.then(terminal_width),
        );
        let mut failures = 0;
        for (server, answer) in answers {
            match answer {
                Ok(report) if out.wants_json() => out.json(&describe(server, report)?)?,
                Ok(report) => {
                    for (paint, line) in top_table::lines(server, report, self.key, &screen) {
                        let line = out.paint(paint, &line).into_owned();
                        out.line(&line)?;
                    }
                }
                Err(error) => {
                    failures += 1;
                    // The only one is told as the error of the command.
                    if answers.len() > 1 || self.times > 1 {
                        out.note(error)?;
                    }
                }
            }
        }
        Ok(failures)
    }
}

fn describe(server: &str, report: &LoadReport) -> Result<Value, CommandError> {
    let load = serde_json::to_value(report);
    let load = load.map_err(|error| CommandError::failed(error.to_string()))?;
    Ok(json!({ "time": words::now_text(), "server": server, "load": load }))
}

fn read(server: &str, answer: Result<String, WordError>) -> Result<LoadReport, String> {
    let text = match answer {
        Ok(text) => text,
        Err(WordError::Empty) => {
            return Err(format!(
                "{server} does not know the word {WORD}: it is not Quenda, or an older one"
            ));
        }
        Err(error) => return Err(format!("{server} {error}")),
    };
    if text.contains("is not executed because") {
        return Err(format!(
            "{server} tells it to clients on its own machine alone: others need {WORD} in 4lw.commands.whitelist"
        ));
    }
    serde_json::from_str(&text).map_err(|error| {
        format!("{server} answers in a form that this program does not know: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_report_is_said() {
        let says = |answer| read("h:1", answer).expect_err("no report");
        let refusal = "qtop is not executed because it is not in the whitelist.\n".to_owned();
        assert!(says(Ok(refusal)).contains("need qtop in 4lw.commands.whitelist"));
        assert!(says(Ok("imok".to_owned())).contains("does not know"));
        assert!(says(Err(WordError::Empty)).contains("it is not Quenda"));
        assert_eq!(
            says(Err(WordError::NobodyListens)),
            "h:1 nobody listens there"
        );
    }
}
