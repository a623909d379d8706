//! Changing large maps, whose trees only the emulator can make.

use crate::call::Call;
use crate::sys::*;
use crate::terms::decode;
use crate::terms::encode;
use larder::host::{MapChange, MapHost};
use larder_term::{TermBuf, TermRef};

/// The emulator, as the engine uses it to change large maps.
pub struct Trees<'c, 'a> {
    call: &'c Call<'a>,
    /// The maps that were made, if there are any: mostly none is dropped.
    made: Option<Box<MadeMaps>>,
}

/// Maps that were made, with the counts of their handles.
#[derive(Default)]
struct MadeMaps(Vec<TermBuf>);

impl MadeMaps {
    fn bytes(&self) -> usize {
        let long = |made: &TermBuf| made.term().map_or(0, |map| map.bytes().len());
        2 * self.0.iter().map(long).sum::<usize>()
    }
}

impl<'c, 'a> Trees<'c, 'a> {
    /// The emulator of the running call.
    pub fn new(call: &'c Call<'a>) -> Self {
        Trees { call, made: None }
    }

    /// Drops the maps that were made. Returns the bytes that were decoded and encoded to make them,
    /// of which the old ones are about as long as the new ones.
    #[inline]
    pub fn finish(self) -> usize {
        self.made.map_or(0, |made| made.bytes())
    }
}

impl MapHost for Trees<'_, '_> {
    #[cold]
    fn changed<'s>(
        &'s mut self,
        map: TermRef<'_>,
        changes: &[MapChange<'_>],
    ) -> Option<TermRef<'s>> {
        let (env, heap) = (self.call.env, &self.call.heap);
        // The emulator makes the new tree: its shape depends on hashes that only the emulator
        // computes.
        let mut word = decode::term(heap, map);
        for &(key, value) in changes {
            let key = decode::term(heap, key);
            let value = value.map(|value| decode::term(heap, value));
            let old = word;
            // SAFETY: the environment is the running call's, and so are all terms.
            let is_map = unsafe {
                match value {
                    Some(value) => enif_make_map_put(env, old, key, value, &mut word),
                    None => enif_make_map_remove(env, old, key, &mut word),
                }
            };
            if is_map == 0 {
                return None;
            }
        }
        // Encode the map that the emulator has made.
        let made = &mut self.made.get_or_insert_default().0;
        made.push(encode::copied(env, word).ok()?);
        made.last()?.term()
    }
}
