//! Batches that outlive the guards with which they are filled.
//!
//! Such a batch has the lifetime `'static`: it has no outside object. A scan needs one with the
//! lifetime of its guard, which may get some. So the batch is lent for the time of a call, and has
//! none again when the call is over.

use super::batch::Batch;

/// A batch that is lent.
struct Loan<'b> {
    batch: &'b mut Batch<'static>,
    /// Whether the loan was ended. It isn't if the borrower panics.
    ended: bool,
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.batch.forget();
        }
    }
}

impl Batch<'static> {
    /// Lends the batch to `f`, with the lifetime of a guard. Afterwards it is empty, but has its
    /// memory and its hints.
    #[inline]
    pub fn lend<'g, R>(&mut self, f: impl FnOnce(&mut Batch<'g>) -> R) -> R {
        self.lend_until(f, Batch::forget)
    }

    /// Like `lend`, but the entries stay: those that were not copied are copied in the end.
    #[inline]
    pub fn lend_owned<'g, R>(&mut self, f: impl FnOnce(&mut Batch<'g>) -> R) -> R {
        self.lend_until(f, Batch::own)
    }

    #[inline]
    fn lend_until<'g, R>(
        &mut self,
        f: impl FnOnce(&mut Batch<'g>) -> R,
        end: impl FnOnce(&mut Batch<'g>),
    ) -> R {
        let mut loan = Loan {
            batch: self,
            ended: false,
        };
        // SAFETY:
        // 1. The types differ in a lifetime alone, so they have the same layout.
        // 2. The batch has no outside object now, so all that `f` finds in it is valid during `'g`.
        // 3. `f` may put objects into it that are valid during `'g` alone. Before anyone sees the
        //    batch again, `end` has taken out or copied all of them. If `f` or `end` panics, the
        //    loan does so.
        let lent = unsafe { &mut *std::ptr::from_mut(&mut *loan.batch).cast::<Batch<'g>>() };
        let result = f(lent);
        end(lent);
        loan.ended = true;
        result
    }
}
