//! Where the page of a login leads back to: a port of this machine that only this machine reaches (RFC 8252 §7.3).

use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use url::Url;

use super::login::TICK;
use crate::{Caller, Fault, raw::quote};

/// How long a browser may take to say what it wants; some open connections that they don't use.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a request may be.
const MAX_REQUEST: usize = 16_000;
const PATH: &str = "/callback";

const WELL: &str = "jp has what it needs. You can close this page and go back to the terminal.";
const REFUSED: &str = "You are not logged in. The terminal says more.";
const ELSEWHERE: &str = "There is nothing here.";

/// The end of the way back.
pub(super) struct Redirect {
    listener: TcpListener,
    uri: String,
}

impl Redirect {
    /// Listens on a port; 0 for one that is free.
    pub(super) fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let uri = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, uri })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits until the page of the login that `state` stands for leads back; returns what it leads to.
    pub(super) fn wait(
        &self,
        state: &str,
        timeout: Duration,
        caller: &dyn Caller,
    ) -> Result<Url, Fault> {
        let end = Instant::now() + timeout;
        while Instant::now() < end {
            if caller.is_cancelled() {
                return Err(Fault::Interrupted);
            }
            match self.listener.accept() {
                // A connection that breaks may be followed by one that doesn't.
                Ok((connection, _)) => {
                    if let Ok(Some(answer)) = self.answer(connection, state) {
                        return answer;
                    }
                }
                Err(_) => thread::sleep(TICK),
            }
        }
        Err(Fault::Login(format!(
            "nobody agreed on its page within {} s",
            timeout.as_secs()
        )))
    }

    /// Answers a browser; returns what comes of it, if it is the one that is waited for.
    fn answer(
        &self,
        mut connection: TcpStream,
        state: &str,
    ) -> io::Result<Option<Result<Url, Fault>>> {
        connection.set_nonblocking(false)?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        connection.set_write_timeout(Some(READ_TIMEOUT))?;
        let request = read(&mut connection)?;
        let back = self
            .target(&request)
            .filter(|back| parameter(back, "state").as_deref() == Some(state));
        let Some(back) = back else {
            respond(&mut connection, "404 Not Found", ELSEWHERE)?;
            return Ok(None);
        };
        let outcome = match parameter(&back, "error") {
            Some(error) => {
                let description = parameter(&back, "error_description").unwrap_or_default();
                Err(Fault::Login(format!(
                    "its authorization server says {}",
                    quote(format!("{error} {description}").trim())
                )))
            }
            None => Ok(back),
        };
        // What the browser shows changes nothing.
        _ = respond(
            &mut connection,
            "200 OK",
            if outcome.is_ok() { WELL } else { REFUSED },
        );
        Ok(Some(outcome))
    }

    /// Returns what a request asks for, if it is the page that logins lead back to.
    fn target(&self, request: &str) -> Option<Url> {
        let target = request.strip_prefix("GET ")?.split(' ').next()?;
        let target = target
            .strip_prefix(PATH)
            .filter(|rest| rest.starts_with('?'))?;
        Url::parse(&format!("{}{target}", self.uri)).ok()
    }
}

/// Reads the head of a request.
fn read(connection: &mut TcpStream) -> io::Result<String> {
    let end = Instant::now() + READ_TIMEOUT;
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = connection.read(&mut chunk)?;
        if length == 0 || request.len() + length > MAX_REQUEST || Instant::now() > end {
            return Err(io::ErrorKind::InvalidData.into());
        }
        request.extend_from_slice(&chunk[..length]);
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

fn respond(connection: &mut TcpStream, status: &str, text: &str) -> io::Result<()> {
    let headers =
        "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nConnection: close";
    write!(
        connection,
        "HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    )
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut values = url
        .query_pairs()
        .filter(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned());
    // One that is there twice says nothing.
    values.next().filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for pages one after the other, and returns what each answered with.
    fn visit(redirect: &Redirect, targets: &[&str]) -> thread::JoinHandle<Vec<String>> {
        let address = redirect.listener.local_addr().unwrap();
        let targets: Vec<_> = targets.iter().map(|target| (*target).to_owned()).collect();
        thread::spawn(move || {
            let answers = targets.iter().map(|target| {
                let mut connection = TcpStream::connect(address).unwrap();
                write!(connection, "GET {target} HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                let mut answer = String::new();
                connection.read_to_string(&mut answer).unwrap();
                answer.lines().next().unwrap_or_default().to_owned()
            });
            answers.collect()
        })
    }

    const LONG: Duration = Duration::from_secs(10);

    #[test]
    fn only_the_login_that_is_waited_for_comes_back() {
        let redirect = Redirect::listen(0).unwrap();
        let targets = [
            "/favicon.ico",
            "/callback?code=x&state=other",
            "/callback?code=x&state=s&state=s",
            "/callback?code=c&state=s",
        ];
        let visits = visit(&redirect, &targets);
        let back = redirect.wait("s", LONG, &()).unwrap();
        assert_eq!(back.as_str(), format!("{}?code=c&state=s", redirect.uri()));
        let not_found = "HTTP/1.1 404 Not Found";
        assert_eq!(
            visits.join().unwrap(),
            [not_found, not_found, not_found, "HTTP/1.1 200 OK"]
        );
    }

    #[test]
    fn refusal_is_told_in_the_servers_words() {
        let redirect = Redirect::listen(0).unwrap();
        let visits = visit(
            &redirect,
            &["/callback?error=access_denied&error_description=not%1b%5bme&state=s"],
        );
        let fault = redirect.wait("s", LONG, &()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            r#"the login failed: its authorization server says "access_denied not\u{1b}[me""#
        );
        assert_eq!(visits.join().unwrap(), ["HTTP/1.1 200 OK"]);
    }

    #[test]
    fn connection_that_says_nothing_is_passed_over() {
        let redirect = Redirect::listen(0).unwrap();
        let _silent = TcpStream::connect(redirect.listener.local_addr().unwrap()).unwrap();
        let _visits = visit(&redirect, &["/callback?code=c&state=s"]);
        redirect.wait("s", LONG, &()).unwrap();
    }

    #[test]
    fn nobody_waits_for_ever() {
        struct Leaving;
        impl Caller for Leaving {
            fn is_cancelled(&self) -> bool {
                true
            }
        }
        let redirect = Redirect::listen(0).unwrap();
        assert!(matches!(
            redirect.wait("s", LONG, &Leaving),
            Err(Fault::Interrupted)
        ));
        let fault = redirect.wait("s", Duration::ZERO, &()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "the login failed: nobody agreed on its page within 0 s"
        );
    }
}
