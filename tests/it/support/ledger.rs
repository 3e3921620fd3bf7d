//! What a client was told about the messages of one queue, and so what it must and must not receive.
//!
//! Each message carries its number. What was answered must come, once and in order, until its `ACK` is answered, and
//! never after. What was asked and not answered, because the server died meanwhile, may have been done or not, but not
//! twice, and not out of order. The same holds for what was refused because the database died meanwhile, but for the order:
//! what was refused before may be missing where what was refused later is there.

use std::collections::VecDeque;

/// See the module. Panics when the server breaks its word.
#[derive(Default)]
pub struct Ledger {
    next: u64,
    /// Sent and not acknowledged, in their order.
    waiting: VecDeque<Sent>,
    /// The message for which `ACK` was asked and not answered: the first of `waiting`.
    acknowledging: Option<u64>,
}

struct Sent {
    number: u64,
    answer: Answer,
}

/// What was answered to a `SEND`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// Nothing, so far.
    None,
    /// That it is stored.
    Stored,
    /// That the store failed, which may have stored it.
    Doubtful,
}

impl Ledger {
    /// A message is to be sent: its number.
    pub fn send(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.waiting.push_back(Sent { number, answer: Answer::None });
        number
    }

    /// `SEND` was answered.
    pub fn sent(&mut self, number: u64) {
        self.answer(number, Answer::Stored);
    }

    /// `SEND` was refused by a store that may have done it nevertheless: the message may come or not.
    pub fn doubted(&mut self, number: u64) {
        self.answer(number, Answer::Doubtful);
    }

    fn answer(&mut self, number: u64, answer: Answer) {
        let sent = self.waiting.iter_mut().find(|sent| sent.number == number);
        sent.expect("answered messages were sent and are not acknowledged").answer = answer;
    }

    /// `SEND` was refused: the message must never come.
    pub fn refused(&mut self, number: u64) {
        self.waiting.retain(|sent| sent.number != number);
    }

    /// A message came; what stands before it did not.
    pub fn received(&mut self, number: u64) {
        assert!(
            self.waiting.iter().any(|sent| sent.number == number),
            "message {number} came although it was acknowledged, refused or never sent"
        );
        let mut skipped = None;
        while let Some(first) = self.waiting.front().filter(|first| first.number != number) {
            let in_order = self.may_be_missing(first) && first.answer == Answer::None;
            skipped = in_order.then_some(first.number).or(skipped);
            self.waiting.pop_front();
        }
        let answered = self.waiting.front().is_some_and(|first| first.answer != Answer::None);
        assert!(answered || skipped.is_none(), "message {number} was stored without {skipped:?}, sent before it");
        self.acknowledging = None;
    }

    /// `ACK` is to be asked for the message that was received last.
    pub fn acknowledge(&mut self) {
        self.acknowledging = Some(self.waiting.front().expect("a message was received").number);
    }

    /// `ACK` was answered.
    pub fn acknowledged(&mut self) {
        self.acknowledging.take().expect("ACK was asked");
        self.waiting.pop_front();
    }

    /// `ACK` was refused: the message stays.
    pub fn not_acknowledged(&mut self) {
        self.acknowledging.take().expect("ACK was asked");
    }

    /// Messages that may wait in the queue, but for doubtful ones.
    pub fn len(&self) -> usize {
        self.waiting.iter().filter(|sent| sent.answer != Answer::Doubtful).count()
    }

    /// Whether a message must be there.
    pub fn has_answered(&self) -> bool {
        self.waiting.iter().any(|sent| sent.answer == Answer::Stored)
    }

    /// The queue is empty: nothing that was answered may be left.
    pub fn emptied(&mut self) {
        for sent in std::mem::take(&mut self.waiting) {
            self.may_be_missing(&sent);
        }
        self.acknowledging = None;
    }

    /// Whether this message, which is not in the queue, was not stored (else it was acknowledged); panics if it is lost.
    fn may_be_missing(&self, sent: &Sent) -> bool {
        let acknowledged = self.acknowledging == Some(sent.number);
        assert!(sent.answer != Answer::Stored || acknowledged, "message {} was answered and is lost", sent.number);
        !acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger with three messages, the first two of them answered.
    fn two_answered_of_three() -> Ledger {
        let mut ledger = Ledger::default();
        for number in 0..3 {
            assert_eq!(ledger.send(), number);
        }
        ledger.sent(0);
        ledger.sent(1);
        ledger
    }

    #[test]
    fn unanswered_messages_may_be_missing() {
        let mut ledger = two_answered_of_three();
        for number in 0..2 {
            ledger.received(number);
            ledger.acknowledge();
            ledger.acknowledged();
        }
        ledger.emptied();
    }

    #[test]
    #[should_panic(expected = "message 1 was answered and is lost")]
    fn an_answered_message_may_not_be_missing_before_another() {
        let mut ledger = two_answered_of_three();
        ledger.received(0);
        ledger.acknowledge();
        ledger.acknowledged();
        ledger.received(2);
    }

    #[test]
    #[should_panic(expected = "message 0 was answered and is lost")]
    fn an_answered_message_may_not_be_missing_at_the_end() {
        two_answered_of_three().emptied();
    }

    #[test]
    #[should_panic(expected = "message 0 came although it was acknowledged")]
    fn an_acknowledged_message_may_not_come_again() {
        let mut ledger = two_answered_of_three();
        ledger.received(0);
        ledger.acknowledge();
        ledger.acknowledged();
        ledger.received(0);
    }

    #[test]
    fn a_message_may_come_again_or_not_when_its_acknowledgement_was_not_answered() {
        for next in [0, 1] {
            let mut ledger = two_answered_of_three();
            ledger.received(0);
            ledger.acknowledge();
            ledger.received(next);
        }
    }

    #[test]
    fn a_doubtful_message_may_come_or_not_whatever_became_of_others() {
        for came in [[true, true], [true, false], [false, true], [false, false]] {
            let mut ledger = Ledger::default();
            for number in 0..3 {
                ledger.send();
                if number < 2 { ledger.doubted(number) } else { ledger.sent(number) }
            }
            let numbers = came.into_iter().zip(0..).filter_map(|(came, number)| came.then_some(number));
            for number in numbers.chain([2]) {
                ledger.received(number);
                ledger.acknowledge();
                ledger.acknowledged();
            }
            ledger.emptied();
        }
    }

    #[test]
    fn a_doubtful_acknowledgement_is_asked_again() {
        let mut ledger = two_answered_of_three();
        ledger.received(0);
        ledger.acknowledge();
        ledger.acknowledge();
        ledger.acknowledged();
        ledger.received(1);
    }

    #[test]
    #[should_panic(expected = "was stored without")]
    fn unanswered_messages_are_stored_in_order() {
        let mut ledger = Ledger::default();
        ledger.send();
        ledger.send();
        ledger.received(1);
    }
}
