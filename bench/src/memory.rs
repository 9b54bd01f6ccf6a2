//! Memory of this process and of the system, as Linux reports it.

/// The most that this process had resident since it began, or since [`forget_peak`], in MiB; `None` if the system does not report
/// it.
#[must_use]
pub fn peak_mib() -> Option<f64> {
    mib_of("/proc/self/status", "VmHWM:")
}

/// Resident memory of this process, in MiB.
#[must_use]
pub fn resident_mib() -> Option<f64> {
    mib_of("/proc/self/status", "VmRSS:")
}

/// Memory that the system can still give without swapping, in MiB.
#[must_use]
pub fn available_mib() -> Option<f64> {
    mib_of("/proc/meminfo", "MemAvailable:")
}

/// Starts the peak again from what is resident now. If the system does not allow that, the peak stays that of the whole process,
/// which is at least as large.
pub fn forget_peak() {
    // Writing 5 resets the peak (proc(5), clear_refs).
    let _ = std::fs::write(CLEAR_REFS, "5");
}

const CLEAR_REFS: &str = "/proc/self/clear_refs";

fn mib_of(file: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(file).ok()?;
    kib_in(&text, name).map(|kib| kib / 1_024.0)
}

fn kib_in(text: &str, name: &str) -> Option<f64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_read() {
        assert_eq!(kib_in("VmPeak:\t 1 kB\nVmHWM:\t  20480 kB\n", "VmHWM:"), Some(20_480.0));
        assert_eq!(kib_in("VmHWM:\t 20480 pages", "VmHWM:"), None);
        assert_eq!(kib_in("", "VmHWM:"), None);
    }

    #[test]
    fn a_peak_has_what_was_held_and_is_forgotten() {
        let (Some(before), Some(_)) = (resident_mib(), available_mib()) else { return };
        let held = std::hint::black_box(vec![1_u8; 256 << 20]);
        let peak = peak_mib().unwrap();
        assert!(peak >= before + 200.0, "{peak} MiB at most, {before} before 256 were held");
        drop(held);
        forget_peak();
        // Kernels without it keep the old peak.
        if std::fs::exists(CLEAR_REFS).unwrap() {
            let now = peak_mib().unwrap();
            assert!(now < peak - 50.0, "a peak of {now} MiB after one of {peak} was forgotten");
        }
    }
}
