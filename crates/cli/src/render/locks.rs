//! What a command cost other programs.

use headwater_upkeep::lock::LockReport;

use super::size::{counted, size};

/// One line about the write lock and the log.
pub(crate) fn line(report: &LockReport) -> String {
    let longest = report.longest_lock_us.div_ceil(1000);
    let put_off = match report.failed_checkpoints {
        0 => String::new(),
        number => format!(", {} put off by readers", counted(number, ["checkpoint", "checkpoints"])),
    };
    format!(
        "{}, longest write lock {longest} ms, log at most {}{put_off}",
        counted(report.transactions, ["transaction", "transactions"]),
        size(report.log_bytes_max)
    )
}
