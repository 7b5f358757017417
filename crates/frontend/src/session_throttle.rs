//! How many sessions a second are opened and resumed: a bucket of tokens, and random refusals while it stays empty.

use crate::gates::Newcomer;

/// Bounds of [`SessionThrottle`]. Chances are in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionThrottleSettings {
    /// Tokens in a full bucket (`connection_throttle_tokens`); 0 admits everybody. Default 0.
    pub tokens: u32,
    /// Time in which `fill_count` tokens come back, ms (`connection_throttle_fill_time`). Default 1.
    pub fill_time_ms: u32,
    /// See `fill_time_ms` (`connection_throttle_fill_count`). Default 1.
    pub fill_count: u32,
    /// How often the chance of a refusal may change, ms (`connection_throttle_freeze_time`); none if nobody is refused
    /// by chance. Default none.
    pub freeze_time_ms: Option<u32>,
    /// What is added to the chance when the bucket is empty (`connection_throttle_drop_increase`). Default 20 000.
    pub drop_increase: u32,
    /// What is taken away when it is full enough (`connection_throttle_drop_decrease`). Default 2 000.
    pub drop_decrease: u32,
    /// Part of the tokens that may be missing from a bucket that is full enough (`connection_throttle_decrease_ratio`).
    /// Default 0.
    pub decrease_ratio: u32,
    /// Tokens of a new session, of one that only this member knows, and of one that is resumed
    /// (`connection_throttle_weight_enabled`). Default 1 each.
    pub weights: [u32; 3],
}

/// A million millionths.
const ONE: u32 = 1_000_000;

impl Default for SessionThrottleSettings {
    fn default() -> Self {
        SessionThrottleSettings {
            tokens: 0,
            fill_time_ms: 1,
            fill_count: 1,
            freeze_time_ms: None,
            drop_increase: 20_000,
            drop_decrease: 2_000,
            decrease_ratio: 0,
            weights: [1; 3],
        }
    }
}

/// The bucket.
#[derive(Debug)]
pub struct SessionThrottle {
    settings: SessionThrottleSettings,
    tokens: u32,
    filled_ms: u64,
    /// The chance of a refusal, in millionths.
    drop: u32,
    adjusted_ms: u64,
}

impl SessionThrottle {
    /// A full bucket.
    pub fn new(settings: SessionThrottleSettings, now_ms: u64) -> SessionThrottle {
        SessionThrottle {
            settings,
            tokens: settings.tokens,
            filled_ms: now_ms,
            drop: 0,
            adjusted_ms: now_ms,
        }
    }

    /// Whether anybody may ever be turned away.
    pub fn is_on(&self) -> bool {
        self.settings.tokens > 0
    }

    /// Whether this client gets a session now. `dice` is a random number below a million.
    pub fn admit(&mut self, newcomer: Newcomer, now_ms: u64, dice: u32) -> bool {
        if !self.is_on() {
            return true;
        }
        self.fill(now_ms);
        if !self.passes_by_chance(now_ms, dice) {
            return false;
        }
        let [opens, opens_locally, resumes] = self.settings.weights;
        let needed = match newcomer {
            Newcomer::Opens => opens,
            Newcomer::OpensLocally => opens_locally,
            Newcomer::Resumes => resumes,
        };
        let is_enough = self.tokens >= needed;
        if is_enough {
            self.tokens -= needed;
        }
        is_enough
    }

    fn fill(&mut self, now_ms: u64) {
        let settings = &self.settings;
        let passed = now_ms.saturating_sub(self.filled_ms);
        let fill_time = u64::from(settings.fill_time_ms.max(1));
        if passed <= fill_time {
            return;
        }
        let back = passed.saturating_mul(settings.fill_count.into()) / fill_time;
        let tokens = u64::from(self.tokens).saturating_add(back);
        self.tokens = tokens.min(settings.tokens.into()) as u32;
        self.filled_ms = now_ms;
    }

    fn passes_by_chance(&mut self, now_ms: u64, dice: u32) -> bool {
        let settings = &self.settings;
        let Some(freeze_ms) = settings.freeze_time_ms else {
            return true;
        };
        if now_ms.saturating_sub(self.adjusted_ms) > freeze_ms.into() {
            let missing = self.deficit();
            let ratio = u64::from(settings.decrease_ratio);
            let may_miss =
                (u64::from(settings.tokens) * ratio + u64::from(ONE) / 2) / u64::from(ONE);
            if missing == settings.tokens {
                self.drop = (self.drop + settings.drop_increase).min(ONE);
            } else if u64::from(missing) <= may_miss {
                self.drop = self.drop.saturating_sub(settings.drop_decrease);
            }
            self.adjusted_ms = now_ms;
        }
        dice % ONE >= self.drop
    }

    /// Tokens that are missing from the bucket.
    pub fn deficit(&self) -> u32 {
        self.settings.tokens - self.tokens
    }

    /// The chance of a refusal.
    pub fn drop_probability(&self) -> f64 {
        f64::from(self.drop) / f64::from(ONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: u32 = ONE - 1;

    fn throttle(settings: SessionThrottleSettings) -> SessionThrottle {
        SessionThrottle::new(settings, 1000)
    }

    #[test]
    fn without_tokens_everybody_is_admitted() {
        let mut off = throttle(SessionThrottleSettings::default());
        assert!((0..10_000).all(|_| off.admit(Newcomer::Opens, 1000, 0)));
    }

    #[test]
    fn an_empty_bucket_refuses_and_fills_again() {
        let mut throttle = throttle(SessionThrottleSettings {
            tokens: 5,
            fill_time_ms: 100,
            fill_count: 2,
            ..SessionThrottleSettings::default()
        });
        let mut admit = |now_ms| throttle.admit(Newcomer::Opens, now_ms, ALWAYS);
        assert!((0..5).all(|_| admit(1000)));
        assert!(!admit(1000) && !admit(1100));
        assert!(admit(1101) && admit(1101) && !admit(1101));
        assert!((0..5).all(|_| admit(60_000)));
        assert!(!admit(60_000));
    }

    #[test]
    fn weights_are_by_what_is_asked_for() {
        let mut throttle = throttle(SessionThrottleSettings {
            tokens: 6,
            weights: [3, 1, 2],
            ..SessionThrottleSettings::default()
        });
        assert!(throttle.admit(Newcomer::Opens, 1000, ALWAYS));
        assert!(throttle.admit(Newcomer::Resumes, 1000, ALWAYS));
        assert_eq!(throttle.deficit(), 5);
        assert!(!throttle.admit(Newcomer::Resumes, 1000, ALWAYS));
        assert!(throttle.admit(Newcomer::OpensLocally, 1000, ALWAYS));
    }

    #[test]
    fn refusals_by_chance_grow_while_it_is_empty_and_shrink_when_it_is_full() {
        let mut throttle = throttle(SessionThrottleSettings {
            tokens: 2,
            fill_time_ms: 1_000_000,
            freeze_time_ms: Some(10),
            drop_increase: 300_000,
            drop_decrease: 400_000,
            ..SessionThrottleSettings::default()
        });
        for _ in 0..2 {
            assert!(throttle.admit(Newcomer::Opens, 1000, ALWAYS));
        }
        for (now_ms, chance) in [
            (1011, 0.3),
            (1015, 0.3),
            (1022, 0.6),
            (1033, 0.9),
            (1044, 1.0),
        ] {
            throttle.admit(Newcomer::Opens, now_ms, ALWAYS);
            assert_eq!(throttle.drop_probability(), chance, "at {now_ms}");
        }
        assert!(!throttle.admit(Newcomer::Opens, 5_000_000, 0));
        assert_eq!(throttle.drop_probability(), 0.6);
        assert!(throttle.admit(Newcomer::Opens, 5_000_001, 600_000));
    }
}
