//! A nonce pair makes shares for one package, ever.

use std::collections::BTreeMap;

use firn_protocol::{
    ids::{PackageDigest, SessionId},
    messages::Commitment,
};

use super::{Invariant, Seen, Word};

type Pair = (usize, [u8; 33], [u8; 33]);

/// What every member has committed to, and what it has released.
#[derive(Default)]
pub(super) struct OneUse {
    committed: BTreeMap<(usize, SessionId), Vec<Pair>>,
    released: BTreeMap<Pair, (SessionId, PackageDigest)>,
}

impl Invariant for OneUse {
    fn rule(&self) -> &'static str {
        "no nonce commitment of a member is in two released share lists"
    }

    fn see(&mut self, seen: &Seen<'_>) -> Result<(), String> {
        let Seen::Sent { member, word, .. } = seen else {
            return Ok(());
        };
        match word {
            Word::Commitments(said) => {
                let pair = |commitment: &Commitment| {
                    (
                        *member,
                        *commitment.hiding.as_bytes(),
                        *commitment.binding.as_bytes(),
                    )
                };
                let pairs = said.inputs.iter().map(pair).collect();
                self.committed.insert((*member, said.session), pairs);
                Ok(())
            }
            Word::Shares(said) => {
                let use_of = (said.session, said.package);
                let committed = self.committed.get(&(*member, said.session));
                for pair in committed.ok_or("shares without commitments")? {
                    let first = *self.released.entry(*pair).or_insert(use_of);
                    if first != use_of {
                        return Err(format!("released for {first:?} and {use_of:?}"));
                    }
                }
                Ok(())
            }
            Word::Receipt(_) | Word::Ceremony(..) | Word::Refusal(_) | Word::Other(_) => Ok(()),
        }
    }
}
