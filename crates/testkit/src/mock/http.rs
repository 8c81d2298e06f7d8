use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A request with its body.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) body: Vec<u8>,
}

/// Longest head that is read. Real clients send less than 1 KiB.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// Reads one request. The body must come with its length, as OpenCode sends it.
pub(super) fn read(stream: &mut TcpStream) -> io::Result<Request> {
    let mut bytes = Vec::new();
    let mut block = [0; 16 << 10];
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        let parsed = head.parse(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if let httparse::Status::Complete(head_bytes) = parsed {
            let length = head
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case("content-length"))
                .and_then(|header| std::str::from_utf8(header.value).ok()?.trim().parse().ok())
                .unwrap_or(0);
            let method = head.method.unwrap_or_default().to_owned();
            let mut body = bytes.split_off(head_bytes);
            let have = body.len();
            body.resize(length, 0);
            if have < length {
                stream.read_exact(&mut body[have..])?;
            }
            return Ok(Request { method, body });
        }
        if bytes.len() > HEAD_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let count = stream.read(&mut block)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&block[..count]);
    }
}

/// Answers with one JSON document.
pub(super) fn reply(stream: &mut TcpStream, status: u16, json: &str) -> io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status} Answer\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{json}",
        json.len()
    )?;
    stream.flush()
}

/// Begins an answer of server-sent events that ends with the connection.
pub(super) fn begin_events(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    stream.flush()
}

/// Writes one event.
pub(super) fn event(stream: &mut TcpStream, data: &str) -> io::Result<()> {
    stream.write_all(format!("data: {data}\n\n").as_bytes())?;
    stream.flush()
}
