//! What planted faults make of the binary feed of a replica.

use std::borrow::Cow;

use walras_feed::message::{AuctionIndicated, Message};
use walras_replica::{FeedPiece, FeedRun};
use walras_types::SizeLots;

use crate::cluster::mutation::Mutation;

/// What is seen of an entry's messages. `has_begun_late`: the replica began with a state, and not with the first entry.
pub(super) fn spoiled(mutation: Option<Mutation>, has_begun_late: bool, piece: &FeedPiece) -> Cow<'_, FeedPiece> {
    let mut wrong = Cow::Borrowed(piece);
    match mutation {
        Some(Mutation::FeedRenumbered) if has_begun_late => {
            wrong.to_mut().runs.iter_mut().for_each(|run| run.first += 1);
        }
        Some(Mutation::FeedLosesMessage) if piece.log_index.0.is_multiple_of(5) => {
            for run in &mut wrong.to_mut().runs {
                let kept = run.as_run().messages().count() - 1;
                let bytes: usize = run.as_run().messages().take(kept).map(|message| 2 + message.len()).sum();
                run.bytes.truncate(bytes);
            }
        }
        Some(Mutation::FeedEarly) => {
            if let Some(release) = &mut wrong.to_mut().release {
                release.log_ns = release.log_ns.saturating_sub(1_000_000);
            }
        }
        Some(Mutation::FeedSellsMore) => rewrite(wrong.to_mut(), |message| {
            if let Message::AssetCleared(cleared) = message {
                cleared.sold += 1;
            }
        }),
        Some(Mutation::FeedIndicatesMore) => rewrite(wrong.to_mut(), |message| {
            if let Message::AuctionIndicated(indicated) = message
                && *indicated != AuctionIndicated::NOTHING
            {
                indicated.volume = SizeLots::new(indicated.volume.get() + 1);
            }
        }),
        _ => {}
    }
    wrong
}

/// Changes each message of an entry.
fn rewrite(piece: &mut FeedPiece, change: impl Fn(&mut Message)) {
    let rewritten = |run: &FeedRun| {
        let mut bytes = Vec::with_capacity(run.bytes.len());
        for (head, mut message) in run.as_run().messages().filter_map(|message| Message::decode(message).ok()) {
            change(&mut message);
            let mut encoded = Vec::new();
            message.encode(&head, &mut encoded);
            bytes.extend_from_slice(&(encoded.len() as u16).to_le_bytes());
            bytes.extend_from_slice(&encoded);
        }
        bytes
    };
    for run in &mut piece.runs {
        run.bytes = rewritten(run);
    }
}
