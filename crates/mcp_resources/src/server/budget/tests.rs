use proptest::prelude::*;

use super::*;

impl Budget {
    /// The open amount, and the amount of each account.
    fn amounts(&self) -> (usize, [Amount; 4]) {
        let ledger = self.ledger.borrow();
        let made = ledger
            .requests
            .values()
            .filter(|stage| **stage == Stage::Made);
        assert_eq!(made.count(), ledger.made);
        (
            ledger.made,
            [ledger.streams, ledger.working, ledger.sending, ledger.uris],
        )
    }
}

fn sum(bytes: impl Iterator<Item = usize>) -> Amount {
    let mut sum = Amount::default();
    bytes.for_each(|bytes| sum.add(bytes));
    sum
}

proptest! {
    /// Whatever is asked, cancelled, made, done and written, in whatever order: once all is over nothing is left.
    #[test]
    fn ledger_has_what_is_open(steps in prop::collection::vec((0..6_usize, 0..4_i64), 0..60)) {
        let budget = Budget::default();
        let (mut accepted, mut lines) = (Vec::new(), Vec::new());
        for (step, number) in steps {
            let (id, bytes) = (RequestId::Number(number), number as usize);
            match step {
                0 | 1 => {
                    let account = [Account::Stream, Account::Work][step];
                    accepted.extend(budget.accept(&id, account, bytes));
                }
                2 => budget.close(&id),
                3 => budget.change(|ledger| ledger.mark_made(&id)),
                4 if lines.len() < 3 => lines.push(budget.charge_line((number > 0).then_some(&id), bytes)),
                4 => drop(lines.remove(0)),
                _ => accepted.truncate(bytes),
            }
            let of_account = |account| {
                sum(accepted.iter().filter(|charge| charge.account == account).map(|charge| charge.bytes))
            };
            let expected = [
                of_account(Account::Stream),
                of_account(Account::Work),
                sum(lines.iter().map(|charge| charge.bytes)),
                Amount::default(),
            ];
            prop_assert_eq!(budget.amounts().1, expected);
        }
        drop((accepted, lines));
        (0..4).for_each(|id| budget.close(&RequestId::Number(id)));
        prop_assert_eq!(budget.amounts(), (0, [Amount::default(); 4]));
    }
}

#[test]
fn id_is_free_once_its_answer_is_being_written() {
    let budget = Budget::default();
    let id = RequestId::Number(1);
    budget.accept(&id, Account::Work, 0).unwrap();
    budget.accept(&id, Account::Work, 0).unwrap_err();
    budget.accept(&id, Account::Stream, 0).unwrap_err();
    let line = budget.charge_line(Some(&id), 1);
    budget.accept(&id, Account::Work, 0).unwrap();
    drop(line);
    budget.accept(&id, Account::Work, 0).unwrap_err();
}

#[test]
fn intake_follows_what_is_open_and_unread() {
    let none = Amount::default();
    let (slow, stop) = (SLOW_FROM, STOP_FROM);
    let below = |bound: Amount| Amount {
        count: bound.count - 1,
        bytes: bound.bytes - 1,
    };
    let many = |count| Amount { count, ..none };
    let large = |bytes| Amount { bytes, ..none };
    // What is being worked on, what is being written, how many answers are made, how the client is read from.
    let cases = [
        (none, none, 0, Intake::Free),
        (below(slow), none, 0, Intake::Free),
        (many(slow.count), none, 0, Intake::Slow),
        (large(slow.bytes), none, 0, Intake::Slow),
        (many(10 * stop.count), none, 0, Intake::Slow),
        (large(10 * stop.bytes), none, 0, Intake::Slow),
        (many(slow.count - 1), many(1), 0, Intake::Slow),
        (many(slow.count - 1), none, 1, Intake::Slow),
        (large(slow.bytes - 1), large(1), 0, Intake::Slow),
        (none, below(stop), 0, Intake::Slow),
        (none, many(stop.count), 0, Intake::Stopped),
        (none, many(stop.count - 1), 1, Intake::Stopped),
        (none, large(stop.bytes), 0, Intake::Stopped),
    ];
    for (working, sending, made, intake) in cases {
        let ledger = Ledger {
            working,
            sending,
            made,
            // Streams and URIs slow nothing down.
            streams: STREAMS,
            uris: large(MAX_URI_BYTES),
            ..Ledger::default()
        };
        assert_eq!(ledger.intake(), intake, "{ledger:?}");
    }
}

#[test]
fn request_is_refused_where_128_mib_are_at_work_or_unread() {
    let budget = Budget::default();
    let accept = |number, account| budget.accept(&RequestId::Number(number), account, 0);
    let working = budget.charge(Account::Work, STOP_FROM.bytes - 1);
    accept(1, Account::Work).unwrap();
    let unread = budget.charge_line(None, 1);
    assert_eq!(
        accept(2, Account::Work).unwrap_err(),
        "2 messages of 134217728 bytes are at work or unread; read answers first"
    );
    accept(2, Account::Stream).unwrap();
    drop(unread);
    accept(3, Account::Work).unwrap();
    drop(working);
}

#[test]
fn streams_are_bounded_by_number_and_bytes() {
    let budget = Budget::default();
    let open = |number, bytes| budget.accept(&RequestId::Number(number), Account::Stream, bytes);
    let few: Vec<_> = (0..4)
        .map(|number| open(number, STREAMS.bytes / 4).unwrap())
        .collect();
    open(4, 1).unwrap_err();
    drop(few);
    let many: Vec<_> = (4..).map_while(|number| open(number, 1).ok()).collect();
    assert_eq!(many.len(), STREAMS.count);
    assert_eq!(budget.ledger.borrow().intake(), Intake::Free);
}
