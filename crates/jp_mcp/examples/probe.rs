use jp_mcp::*;
use std::time::Duration;
struct C;
impl Caller for C {
    fn asked(&self, e: &Elicitation) -> Elicited { println!("ASKED {e:?}"); Elicited::Decline }
    fn progressed(&self, p: &Progress) { println!("PROGRESS {p:?}") }
    fn logged(&self, m: &LogMessage) { println!("LOG {m:?}") }
}
fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let first = args.remove(0);
    let transport = if first.starts_with("http") {
        Transport::Http(Endpoint { url: first.parse().unwrap(), headers: Default::default(), token: None })
    } else {
        let at = args.iter().position(|a| a == "--").unwrap_or(args.len());
        let rest: Vec<String> = args.split_off(at).into_iter().skip(1).collect();
        let program = Program { program: first, arguments: args, environment: Default::default(), withheld: vec![], directory: ".".into() };
        args = rest;
        Transport::Stdio(program)
    };
    let config = ServerConfig { name: "s".into(), transport, startup_timeout: Duration::from_secs(20), timeout: Duration::from_secs(10) };
    let servers = Servers::new(vec![config], Client { version: "1".into(), root: "/tmp".into() }).unwrap();
    let c = match servers.connect("s", &C) { Ok(c) => c, Err(e) => { println!("ERR {e}\n{:?}", e.stderr); return } };
    println!("{:?}", c.about());
    match c.tools(&C) { Ok(l) => { for t in &l.items { println!("tool {}", t.name) } println!("{:?} {:?}", l.warnings, l.cut.map(|e| e.to_string())) } Err(e) => println!("ERR {e}") }
    match c.resources(&C) { Ok(l) => { for t in &l.items { println!("res {} {:?}", t.uri, t.name) } println!("{:?} {:?}", l.warnings, l.cut.map(|e| e.to_string())) } Err(e) => println!("ERR {e}") }
    match c.templates(&C) { Ok(l) => for t in &l.items { println!("tpl {}", t.uri_template) }, Err(e) => println!("ERR {e}") }
    for a in args {
        if let Some(uri) = a.strip_prefix("read=") { println!("{:?}", c.resource(uri, &C).map_err(|e| e.to_string())); continue }
        let (name, arguments) = a.split_once('=').unwrap_or((&a, "{}"));
        match c.call(name, &serde_json::from_str(arguments).unwrap(), &C) {
            Ok(r) => println!("{name} -> {} {:?}", serde_json::to_string(&r.response).unwrap().chars().take(1500).collect::<String>(), r.warnings),
            Err(e) => println!("{name} -> ERR {e}\n{:?}", e.stderr),
        }
    }
}
