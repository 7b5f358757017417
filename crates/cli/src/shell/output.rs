//! Where a command's results go: standard output and standard error, as text or as JSON, with or without colours.

use std::borrow::Cow;
use std::future::Future;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::Value;
use tokio::sync::watch;

use super::CommandError;
use super::guard::harmless;
use super::prompt::Prompt;

/// Columns of a terminal whose width cannot be learned.
const DEFAULT_WIDTH: usize = 80;
/// Lines of one whose height cannot be learned.
const DEFAULT_HEIGHT: usize = 24;

/// Columns of the terminal that standard output goes to.
pub fn terminal_width() -> usize {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .filter(|width| *width > 0)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Lines of that terminal.
pub fn terminal_height() -> usize {
    terminal_size::terminal_size()
        .map(|(_, height)| usize::from(height.0))
        .filter(|height| *height > 0)
        .unwrap_or(DEFAULT_HEIGHT)
}

/// What a piece of text means; the colour follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Path or name of a znode.
    Path,
    /// Data of a znode.
    Data,
    /// Of less interest.
    Dim,
    /// Well.
    Good,
    /// Wrong.
    Bad,
    /// Of most interest.
    Strong,
}

impl Paint {
    /// Parameters of the terminal's "select graphic rendition".
    fn code(self) -> &'static str {
        match self {
            Paint::Path => "36",
            Paint::Data => "0",
            Paint::Dim => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Strong => "1",
        }
    }
}

/// Both streams behind one lock, so that lines of commands and of watch events do not mix.
pub struct Streams {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

impl Streams {
    /// Writes to standard output; it is held back until [`Streams::flush`] or the next note.
    pub fn write(&mut self, text: &[u8]) -> std::io::Result<()> {
        self.out.write_all(text)
    }

    /// Writes to standard error, behind what standard output has held back.
    pub fn note(&mut self, text: &str) -> std::io::Result<()> {
        // A failure of one stream is told on the other.
        let flushed = self.out.flush();
        self.err.write_all(text.as_bytes())?;
        self.err.write_all(b"\n")?;
        self.err.flush()?;
        flushed
    }

    /// Sends what was held back.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// The streams as they are shared.
#[derive(Debug, Clone)]
pub struct SharedStreams(Arc<Mutex<Streams>>);

impl SharedStreams {
    /// The process's own.
    pub fn standard() -> Self {
        SharedStreams::new(
            Box::new(std::io::BufWriter::new(std::io::stdout())),
            Box::new(std::io::stderr()),
        )
    }

    /// Any two writers.
    pub fn new(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        SharedStreams(Arc::new(Mutex::new(Streams { out, err })))
    }

    /// Both streams, for as long as the guard lives.
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text that comes by itself, between two lines of the user: a watch event. It ends with an end of line.
#[derive(Debug)]
pub struct Line(pub String);

/// How results are shown.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// JSON instead of text.
    pub json: bool,
    /// Events of the connection are kept off.
    pub quiet: bool,
    /// Colours.
    pub colour: bool,
    /// Colours of what standard error gets.
    pub complaint_colour: bool,
    /// What would steer the terminal that standard output is, is shown instead.
    pub guarded: bool,
    /// The same of standard error.
    pub complaints_guarded: bool,
    /// Standard output is a terminal.
    pub terminal: bool,
}

/// What a command writes to.
#[derive(Debug, Clone)]
pub struct Output {
    streams: SharedStreams,
    style: Style,
    interrupts: watch::Receiver<u64>,
    /// Who prints what comes while a line is being typed.
    prompt: Arc<OnceLock<Prompt>>,
}

impl Output {
    /// `interrupts` counts how often Ctrl-C was pressed.
    pub fn new(streams: SharedStreams, style: Style, interrupts: watch::Receiver<u64>) -> Self {
        Output {
            streams,
            style,
            interrupts,
            prompt: Arc::default(),
        }
    }

    /// Lets what comes by itself be printed above the line that is being typed, for this output and its clones.
    pub fn set_prompt(&self, prompt: Prompt) {
        // There is one prompt, set once.
        drop(self.prompt.set(prompt));
    }

    /// Prints what comes by itself. Where that cannot be printed nothing can be told either.
    pub fn announce(&self, line: &Line) {
        let line = &Line(guarded(self.style.guarded, &line.0).into_owned());
        if let Some(prompt) = self.prompt.get() {
            return prompt.announce(line);
        }
        let mut streams = self.streams.lock();
        drop(
            streams
                .write(line.0.as_bytes())
                .and_then(|()| streams.flush()),
        );
    }

    /// A line about a failure on standard error. Where that is closed nothing can be told.
    pub fn complain(&self, text: &str) {
        let text = guarded(self.style.complaints_guarded, text);
        let painted = if self.style.complaint_colour {
            format!("\x1b[{}m{text}\x1b[0m", Paint::Bad.code())
        } else {
            text.into_owned()
        };
        drop(self.streams.lock().note(&painted));
    }

    /// A line on standard output.
    pub fn line(&mut self, text: &str) -> Result<(), CommandError> {
        self.text(text)?;
        self.raw(b"\n")
    }

    /// Text on standard output without an end of line.
    pub fn text(&mut self, text: &str) -> Result<(), CommandError> {
        self.raw(guarded(self.style.guarded, text).as_bytes())
    }

    /// Bytes of the shell's own on standard output, those that steer the terminal among them.
    pub fn raw(&mut self, text: &[u8]) -> Result<(), CommandError> {
        Ok(self.streams.lock().write(text)?)
    }

    /// A line on standard error.
    pub fn note(&mut self, text: &str) -> Result<(), CommandError> {
        let text = guarded(self.style.complaints_guarded, text);
        Ok(self.streams.lock().note(&text)?)
    }

    /// One JSON value as one line on standard output.
    pub fn json(&mut self, value: &Value) -> Result<(), CommandError> {
        self.line(&value.to_string())
    }

    /// Sends what was held back; commands that follow something call it after each piece.
    pub fn flush(&mut self) -> Result<(), CommandError> {
        Ok(self.streams.lock().flush()?)
    }

    /// Whether results are wanted as JSON.
    pub fn wants_json(&self) -> bool {
        self.style.json
    }

    /// Whether events of the connection are kept off.
    pub fn is_quiet(&self) -> bool {
        self.style.quiet
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.style.terminal
    }

    /// The text in the colour of its meaning, or as it is where colours are off.
    pub fn paint<'a>(&self, paint: Paint, text: &'a str) -> Cow<'a, str> {
        if self.style.colour {
            format!("\x1b[{}m{text}\x1b[0m", paint.code()).into()
        } else {
            text.into()
        }
    }

    /// Resolves at the next Ctrl-C. Commands that follow something end on it.
    pub fn interrupted(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut interrupts = self.interrupts.clone();
        interrupts.mark_unchanged();
        async move {
            if interrupts.changed().await.is_err() {
                // Nobody presses Ctrl-C any more.
                std::future::pending::<()>().await;
            }
        }
    }
}

fn guarded(guarded: bool, text: &str) -> Cow<'_, str> {
    if guarded { harmless(text) } else { text.into() }
}

/// What went into captured streams.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub struct Captured {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

#[cfg(test)]
impl Captured {
    /// Standard output so far.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.out.lock().expect("nobody panics with it")).into_owned()
    }

    /// Standard error so far.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.err.lock().expect("nobody panics with it")).into_owned()
    }
}

/// An output without colours whose text can be read back, for tests.
#[cfg(test)]
pub fn captured() -> (Output, Captured) {
    struct Sink(Arc<Mutex<Vec<u8>>>);
    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("nobody panics with it").extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let captured = Captured::default();
    let streams = SharedStreams::new(
        Box::new(Sink(Arc::clone(&captured.out))),
        Box::new(Sink(Arc::clone(&captured.err))),
    );
    let style = Style {
        json: false,
        quiet: false,
        colour: false,
        complaint_colour: false,
        guarded: false,
        complaints_guarded: false,
        terminal: false,
    };
    (Output::new(streams, style, watch::channel(0).1), captured)
}
