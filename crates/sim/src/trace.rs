//! What happened, as a hash of everything and as text of the last of it.

use std::collections::VecDeque;
use std::fmt;

/// Lines that a trace keeps.
const LINES: usize = 600;

/// The trace of one simulation.
#[derive(Debug)]
pub struct Trace {
    hash: u64,
    events: u64,
    mode: TraceMode,
    lines: VecDeque<String>,
}

/// How much text a trace makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceMode {
    /// None: the hash alone.
    Off,
    /// The last lines are kept.
    Tail,
    /// Every line goes to standard error.
    Print,
}

impl Trace {
    /// An empty trace.
    pub fn new(mode: TraceMode) -> Trace {
        Trace {
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
            mode,
            lines: VecDeque::new(),
        }
    }

    /// Mixes an event into the hash.
    pub fn note(&mut self, numbers: &[u64]) {
        self.events += 1;
        for number in numbers {
            self.mix(*number);
        }
    }

    /// Mixes bytes into the hash.
    pub fn note_bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_be_bytes(word));
        }
        self.mix(bytes.len() as u64);
    }

    fn mix(&mut self, number: u64) {
        self.hash = (self.hash.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    /// Adds a line, if there is text at all.
    pub fn line(&mut self, now_us: u64, text: fmt::Arguments<'_>) {
        let stamp = format!("{:>5}.{:06}", now_us / 1_000_000, now_us % 1_000_000);
        match self.mode {
            TraceMode::Off => {}
            TraceMode::Print => eprintln!("{stamp} {text}"),
            TraceMode::Tail => {
                if self.lines.len() == LINES {
                    self.lines.pop_front();
                }
                self.lines.push_back(format!("{stamp} {text}"));
            }
        }
    }

    /// Whether lines are wanted.
    pub fn is_on(&self) -> bool {
        self.mode != TraceMode::Off
    }

    /// The hash of everything so far.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The last lines.
    pub fn tail(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }
}
