//! Receives the redirect of a login's page on a local port (RFC 8252 §7.3).

use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    thread,
    time::{Duration, Instant},
};

use url::Url;

use super::login::TICK;
use crate::{Caller, Fault, raw::quote};

/// The time limit for reading a request. Some browsers open connections that they don't use.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest request, in bytes.
const MAX_REQUEST: usize = 16_000;
const PATH: &str = "/callback";

const WELL: &str = "jp received the answer. Close this page and return to the terminal.";
const REFUSED: &str = "You are not logged in. The terminal shows the reason.";
const ELSEWHERE: &str = "There is nothing here.";

/// The local port for the redirect.
pub(super) struct Redirect {
    listener: TcpListener,
    uri: String,
}

impl Redirect {
    /// Listens on a port; 0 means any free port.
    pub(super) fn listen(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let uri = format!("http://{}{PATH}", listener.local_addr()?);
        Ok(Self { listener, uri })
    }

    pub(super) fn uri(&self) -> &str {
        &self.uri
    }

    /// Waits for the redirect of the login with this `state`. Returns its target.
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
                // Another connection may follow a broken one.
                Ok((connection, _)) => {
                    if let Ok(Some(answer)) = self.answer(connection, state) {
                        return answer;
                    }
                }
                Err(_) => thread::sleep(TICK),
            }
        }
        Err(Fault::Login(format!(
            "you did not finish it in the browser within {} s",
            timeout.as_secs()
        )))
    }

    /// Answers a browser. Returns the outcome of the login if the request is its redirect.
    fn answer(
        &self,
        mut connection: TcpStream,
        state: &str,
    ) -> io::Result<Option<Result<Url, Fault>>> {
        connection.set_nonblocking(false)?;
        connection.set_read_timeout(Some(READ_TIMEOUT))?;
        connection.set_write_timeout(Some(READ_TIMEOUT))?;
        let request = read(&mut connection)?;
        let target = self
            .target(&request)
            .filter(|target| parameter(target, "state").as_deref() == Some(state));
        let Some(target) = target else {
            respond(&mut connection, "404 Not Found", ELSEWHERE)?;
            return Ok(None);
        };
        let outcome = match parameter(&target, "error") {
            Some(error) => {
                let description = parameter(&target, "error_description").unwrap_or_default();
                Err(Fault::Login(format!(
                    "its authorization server answered {}",
                    quote(format!("{error} {description}").trim())
                )))
            }
            None => Ok(target),
        };
        // The login doesn't depend on the page in the browser.
        _ = respond(
            &mut connection,
            "200 OK",
            if outcome.is_ok() { WELL } else { REFUSED },
        );
        Ok(Some(outcome))
    }

    /// Returns the target of a request if it is a redirect.
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
    // A repeated parameter is ambiguous, so it counts as missing.
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
    fn redirect_of_another_login_is_ignored() {
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
    fn refusal_has_the_servers_message() {
        let redirect = Redirect::listen(0).unwrap();
        let visits = visit(
            &redirect,
            &["/callback?error=access_denied&error_description=not%1b%5bme&state=s"],
        );
        let fault = redirect.wait("s", LONG, &()).unwrap_err();
        assert_eq!(
            fault.to_string(),
            r#"the login failed: its authorization server answered "access_denied not\u{1b}[me""#
        );
        assert_eq!(visits.join().unwrap(), ["HTTP/1.1 200 OK"]);
    }

    #[test]
    fn silent_connection_is_ignored() {
        let redirect = Redirect::listen(0).unwrap();
        let _silent = TcpStream::connect(redirect.listener.local_addr().unwrap()).unwrap();
        let _visits = visit(&redirect, &["/callback?code=c&state=s"]);
        redirect.wait("s", LONG, &()).unwrap();
    }

    #[test]
    fn wait_ends() {
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
            "the login failed: you did not finish it in the browser within 0 s"
        );
    }
}
