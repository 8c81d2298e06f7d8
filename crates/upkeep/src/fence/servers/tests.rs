use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use super::*;

/// A server that gives each request the answer that stands beside its route, then the next connection.
fn serve(answers: &'static [(&'static str, &'static str)]) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            let text = String::from_utf8_lossy(&request[..read]).into_owned();
            let answer = answers.iter().find(|(route, _)| text.starts_with(&format!("GET {route}?")));
            let answer =
                answer.map_or("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", |(_, answer)| answer);
            stream
                .write_all(
                    answer
                        .replace("DIR", if text.contains("directory=%2Fa%20b") { "1" } else { "0" })
                        .as_bytes(),
                )
                .unwrap();
        }
    });
    Server { address }
}

fn probe(servers: Vec<Server>, has_hidden: bool) -> OpenCodeServers {
    let probe = OpenCodeServers::new(Path::new("/nowhere"), Duration::from_secs(5));
    let far = Instant::now() + Duration::from_hours(1);
    probe.kept.lock().unwrap().servers = Some((far, Found { holders: Holders::Others, servers, has_hidden }));
    probe
}

const IDLE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
const BUSY: &str =
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 25\r\n\r\n{\"ses_a\":{\"type\":\"busy\"}} ";
const ACTIVE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n[\"ses_b\"]";
const PAGE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 6\r\n\r\n<html>";
const DENIED: &str = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

#[test]
fn only_a_complete_answer_says_idle() {
    type Case = (&'static str, &'static [(&'static str, &'static str)], bool, Activity);
    let table: [Case; 8] = [
        ("busy", &[("/session/status", BUSY)], false, Activity::Busy),
        (
            "busy by the other route",
            &[("/session/status", IDLE), ("/api/session/active", BUSY)],
            false,
            Activity::Busy,
        ),
        (
            "another session is active",
            &[("/session/status", IDLE), ("/api/session/active", ACTIVE)],
            false,
            Activity::Idle,
        ),
        ("idle, no second route", &[("/session/status", IDLE)], false, Activity::Idle),
        (
            "a page for an unknown route",
            &[("/session/status", IDLE), ("/api/session/active", PAGE)],
            false,
            Activity::Idle,
        ),
        ("a password is needed", &[("/session/status", DENIED)], false, Activity::Unknown),
        ("no such route", &[], false, Activity::Unknown),
        ("a holder with hidden ports", &[("/session/status", IDLE)], true, Activity::Unknown),
    ];
    for (name, answers, has_hidden, activity) in table {
        assert_eq!(probe(vec![serve(answers)], has_hidden).activity("ses_a", "/a b"), activity, "{name}");
    }
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert_eq!(probe(vec![Server { address: closed }], false).activity("ses_a", "/"), Activity::Unknown);
    assert_eq!(probe(Vec::new(), false).activity("ses_a", "/"), Activity::Unknown, "a holder without ports");
}

#[test]
fn one_busy_server_among_others_is_enough() {
    let servers = vec![serve(&[("/session/status", DENIED)]), serve(&[("/session/status", BUSY)])];
    assert_eq!(probe(servers, true).activity("ses_a", "/"), Activity::Busy);
}

/// A server that is idle, and answers once `others` are asked too. Counts the requests.
fn serve_together(others: &Arc<Barrier>, requests: &Arc<AtomicU32>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (others, requests) = (Arc::clone(others), Arc::clone(requests));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap();
            if request[..read].starts_with(b"GET /session/status?") {
                requests.fetch_add(1, Ordering::SeqCst);
                others.wait();
            }
            stream.write_all(IDLE.as_bytes()).unwrap();
        }
    });
    Server { address }
}

#[test]
fn servers_are_asked_at_the_same_time() {
    let (others, requests) = (Arc::new(Barrier::new(3)), Arc::new(AtomicU32::new(0)));
    let servers = (0..3).map(|_| serve_together(&others, &requests)).collect();
    assert_eq!(probe(servers, false).activity("ses_a", "/"), Activity::Idle);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
}

#[test]
fn a_server_is_warmed_once_for_each_directory() {
    let (others, requests) = (Arc::new(Barrier::new(1)), Arc::new(AtomicU32::new(0)));
    let probe = probe(vec![serve_together(&others, &requests)], false);
    for (directory, total) in [("/a", 1), ("/a", 1), ("/b", 2), ("/a", 2)] {
        probe.warm(directory);
        assert_eq!(requests.load(Ordering::SeqCst), total);
        // What was said meanwhile counts no more.
        probe.kept.lock().unwrap().answers.clear();
    }
    assert_eq!(probe.activity("ses_a", "/a"), Activity::Idle);
    assert_eq!(requests.load(Ordering::SeqCst), 3);
}

#[test]
fn only_the_server_whose_answer_is_too_old_is_asked_again() {
    let others = Arc::new(Barrier::new(1));
    let counts = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
    let servers: Vec<Server> = counts.iter().map(|requests| serve_together(&others, requests)).collect();
    let probe = probe(servers.clone(), false);
    let far = Instant::now() + Duration::from_hours(1);
    let fresh = BTreeMap::from([(servers[0], (far, [Some("{\"ses_a\":{}}".to_owned()), None]))]);
    probe.kept.lock().unwrap().answers.insert("/".to_owned(), fresh);
    assert_eq!(probe.activity("ses_a", "/"), Activity::Busy, "what is kept counts");
    assert_eq!(counts.map(|requests| requests.load(Ordering::SeqCst)), [0, 1]);
}

#[test]
fn each_directory_is_asked_for_itself() {
    // The server writes 1 for DIR where the request names the directory `/a b`, else 0.
    const HERE: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\n{\"s_DIR\":0}";
    let probe = probe(vec![serve(&[("/session/status", HERE)])], false);
    assert_eq!(probe.activity("s_1", "/a b"), Activity::Busy);
    assert_eq!(probe.activity("s_1", "/other"), Activity::Idle);
    assert_eq!(probe.activity("s_0", "/other"), Activity::Busy);
}

#[test]
fn a_file_that_only_this_process_has_open_has_no_other_holder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "x").unwrap();
    let own = std::fs::File::open(&path).unwrap();
    let probe = OpenCodeServers::new(&path, Duration::from_secs(1));
    assert_ne!(probe.holders(), Holders::Others);
    drop(own);

    let mut child = std::process::Command::new("sh")
        .args(["-c", "exec 3<\"$0\"; echo ready; read line"])
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let probe = OpenCodeServers::new(&path, Duration::from_secs(1));
    assert_eq!(probe.holders(), Holders::Others);
    drop(child.stdin.take());
    child.wait().unwrap();
}
