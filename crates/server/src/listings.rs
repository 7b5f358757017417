//! Long answers to four-letter words, made once for all who wait for them.
//!
//! Of each word one answer is made at a time. Whoever asks meanwhile waits for the next one, and so do all who ask with
//! him: they get the same text. So nobody waits for longer than two of them take, and however many ask, and however slowly
//! they read, the memory is that of a few texts.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::four_letter::Word;
use crate::limits::{LISTING_ALWAYS_BYTES, LISTING_ROOM_KIB};

/// An answer, for as long as somebody reads it.
#[derive(Debug)]
pub struct Listing {
    text: String,
    _room: Option<OwnedSemaphorePermit>,
}

impl Listing {
    /// The answer.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The answers that are being made and read.
#[derive(Debug)]
pub struct Listings {
    by_word: Mutex<HashMap<Word, Arc<OfWord>>>,
    /// Room for texts, in KiB.
    room: Arc<Semaphore>,
}

impl Default for Listings {
    fn default() -> Listings {
        Listings {
            by_word: Mutex::default(),
            room: Arc::new(Semaphore::new(LISTING_ROOM_KIB as usize)),
        }
    }
}

#[derive(Debug, Default)]
struct OfWord {
    turn: tokio::sync::Mutex<()>,
    rounds: Mutex<Rounds>,
}

#[derive(Debug, Default)]
struct Rounds {
    /// How many were begun.
    begun: u64,
    /// The text of the last one.
    last: Weak<Listing>,
}

impl Listings {
    /// An answer that was begun after this call: made by `make`, or the one that another caller has had made.
    ///
    /// # Errors
    /// There is no room, because of those who do not read theirs; or `make` fails.
    pub async fn get<F>(&self, word: Word, make: impl FnOnce() -> F) -> io::Result<Arc<Listing>>
    where
        F: Future<Output = io::Result<String>>,
    {
        let of_word = Arc::clone(self.by_word.lock().entry(word).or_default());
        let arrived = of_word.rounds.lock().begun;
        let _turn = of_word.turn.lock().await;
        {
            let mut rounds = of_word.rounds.lock();
            if rounds.begun > arrived
                && let Some(listing) = rounds.last.upgrade()
            {
                return Ok(listing);
            }
            rounds.begun += 1;
        }
        let text = make().await?;
        let listing = Arc::new(Listing {
            _room: self.room_for(text.len())?,
            text,
        });
        of_word.rounds.lock().last = Arc::downgrade(&listing);
        Ok(listing)
    }

    fn room_for(&self, length: usize) -> io::Result<Option<OwnedSemaphorePermit>> {
        if length <= LISTING_ALWAYS_BYTES {
            return Ok(None);
        }
        // A single one always fits.
        let kib = u32::try_from(length >> 10).unwrap_or(LISTING_ROOM_KIB);
        let room = Arc::clone(&self.room);
        let room = room.try_acquire_many_owned(kib.min(LISTING_ROOM_KIB));
        room.map(Some)
            .map_err(|_| io::ErrorKind::OutOfMemory.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_share_what_is_begun_after_they_have_come() {
        let listings = Arc::new(Listings::default());
        let (made, go) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
        let ask = || {
            let (listings, made, go) = (listings.clone(), made.clone(), go.clone());
            tokio::spawn(async move {
                let make = || async {
                    let number = made.fetch_add(1, Ordering::Relaxed);
                    go.notified().await;
                    Ok(number.to_string())
                };
                listings.get(Word::Cons, make).await.expect("made")
            })
        };
        let settle = || async {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
        };
        let first = ask();
        settle().await;
        let others = [ask(), ask(), ask()];
        settle().await;
        assert_eq!(made.load(Ordering::Relaxed), 1, "the others wait");
        go.notify_one();
        assert_eq!(first.await.expect("asked").text(), "0");
        settle().await;
        go.notify_one();
        for other in others {
            assert_eq!(other.await.expect("asked").text(), "1");
        }
        assert_eq!(made.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn texts_that_nobody_reads_are_bounded() {
        let listings = Listings::default();
        let long = || async { Ok("x".repeat(LISTING_ROOM_KIB as usize * 1024 / 2 + 1024)) };
        let first = listings.get(Word::Cons, long).await.expect("room");
        listings
            .get(Word::Dump, long)
            .await
            .expect_err("the first is still read");
        let short = || async { Ok("x".to_owned()) };
        listings
            .get(Word::Dump, short)
            .await
            .expect("it needs no room");
        drop(first);
        listings.get(Word::Dump, long).await.expect("room again");
    }
}
