//! Lines in, lines out. Everything that one read brought is answered in one write.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use crate::replies::Replies;

const READ_BYTES: usize = 256 << 10;
/// Replies are written before they grow beyond that.
const WRITE_BYTES: usize = 64 << 10;

pub(crate) fn serve(replies: &Replies) -> io::Result<()> {
    let mut input = io::stdin().lock();
    // As a file, because the standard library's own handle looks for line ends.
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut chunk = vec![0; READ_BYTES];
    let (mut received, mut out) = (Vec::new(), Vec::new());
    let mut scanned = 0;
    loop {
        let read = input.read(&mut chunk)?;
        if read == 0 {
            return Ok(());
        }
        received.extend_from_slice(&chunk[..read]);
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &received[scanned..]) {
            let end = scanned + length;
            if let Some(reply) = replies.reply(&received[start..end]) {
                out.extend_from_slice(&reply);
                out.push(b'\n');
            }
            if out.len() > WRITE_BYTES {
                output.write_all(&out)?;
                out.clear();
            }
            start = end + 1;
            scanned = start;
        }
        received.drain(..start);
        scanned = received.len();
        output.write_all(&out)?;
        out.clear();
    }
}
