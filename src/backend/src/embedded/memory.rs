//! How much memory this machine, or the group of processes this one is in, has left.

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    /// Of the machine, or of the group where that is less.
    pub(super) total: u64,
    /// That can be had now without swapping.
    pub(super) available: Option<u64>,
}

impl Memory {
    /// As the kernel says now; `None` where it says nothing.
    pub(super) fn now() -> Option<Self> {
        let machine = of_meminfo(&read("/proc/meminfo")?)?;
        let number = |path: &str| read(path).and_then(|text| text.trim().parse().ok());
        // A group without a limit says `max`, which is no number.
        let limit = number("/sys/fs/cgroup/memory.max");
        Some(match (limit, number("/sys/fs/cgroup/memory.current")) {
            (Some(limit), Some(used)) => machine.within(limit, used),
            _ => machine,
        })
    }

    fn within(self, limit: u64, used: u64) -> Self {
        let left = limit.saturating_sub(used);
        Self {
            total: self.total.min(limit),
            available: Some(self.available.map_or(left, |available| available.min(left))),
        }
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn of_meminfo(text: &str) -> Option<Memory> {
    let kibibytes = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        let number: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        number.checked_mul(1024)
    };
    Some(Memory {
        total: kibibytes("MemTotal:")?,
        available: kibibytes("MemAvailable:"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_says() {
        let text = "MemTotal:       2000 kB\nMemFree:  1 kB\nMemAvailable:   1500 kB\n";
        let memory = of_meminfo(text).unwrap();
        assert_eq!(
            memory,
            Memory {
                total: 2000 << 10,
                available: Some(1500 << 10)
            }
        );
        assert_eq!(of_meminfo("nothing"), None);
        let group = memory.within(1000 << 10, 400 << 10);
        assert_eq!(
            group,
            Memory {
                total: 1000 << 10,
                available: Some(600 << 10)
            }
        );
        assert_eq!(memory.within(u64::MAX, 0), memory);
    }
}
