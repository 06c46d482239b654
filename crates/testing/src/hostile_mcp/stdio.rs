//! The server over stdin and stdout, a message a line.

use std::{
    io::{self, BufRead, BufWriter, Write},
    sync::mpsc,
    thread,
};

use super::{
    modes::Mode,
    outgoing::{Outbox, Outgoing},
    server::Server,
};

/// Lines that are no message.
const RUBBISH: &[&[u8]] = &[
    b"Starting the server ...",
    b"caf\xe9 \xff\xfe",
    b"\x1b[2J\x1b]0;owned\x07\x1b[31mred",
    br#"[{"jsonrpc":"2.0"}, 1, null]"#,
    b"42",
    br#"{"jsonrpc":"2.0","id":"#,
    br#"{"hello":"world"}"#,
    b"",
];
const ENDLESS: &[u8] = b"Lorem ipsum, says the server, and nothing else.\n";
const ENDLESS_BYTES: usize = 200_000_000;

/// Serves until stdin ends and what was asked is answered.
pub(crate) fn serve(mode: Mode) {
    let (outbox, outgoing) = mpsc::channel();
    let writer = thread::spawn(move || write(mode, &outgoing));
    listen(mode, outbox);
    // A reader who went away is no failure of ours.
    let _ = writer.join();
}

fn listen(mode: Mode, outbox: Outbox) {
    if mode == Mode::OnlyRubbish {
        let _ = outbox.send(Outgoing::Repeated(ENDLESS, ENDLESS_BYTES));
    }
    let mut server = Server::new(mode);
    for line in io::stdin().lock().split(b'\n').map_while(Result::ok) {
        if let Ok(message) = serde_json::from_slice(&line) {
            server.receive(message, &outbox);
        }
    }
}

fn write(mode: Mode, outgoing: &mpsc::Receiver<Outgoing>) -> io::Result<()> {
    let mut stdout = BufWriter::new(io::stdout());
    let mut rubbish = RUBBISH.iter().cycle();
    for sent in outgoing {
        if mode == Mode::Rubbish {
            let line = rubbish.next().expect("a cycle has no end");
            stdout.write_all(line)?;
            stdout.write_all(b"\n")?;
        }
        sent.write(&mut stdout)?;
        if !matches!(sent, Outgoing::Repeated(..)) {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()?;
    }
    Ok(())
}
