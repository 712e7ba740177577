//! Control groups of both versions, in files of the same form.

use super::*;

/// The files of a system in a folder.
pub(crate) struct System(tempfile::TempDir);

impl System {
    /// Lays the files out as they are for a process in `group` of a hierarchy whose part
    /// `mounted` is at `/sys/fs/cgroup/cpu`.
    pub(crate) fn new(group: &str, mounted: &str, kind: &str) -> Self {
        let system = Self(tempfile::tempdir().unwrap());
        system.write("proc/self/cgroup", group);
        let mount =
            format!("31 23 0:28 / / rw - ext4 /dev/vda rw\n32 31 0:29 {mounted} /sys/fs/cgroup/cpu rw - {kind}\n");
        system.write("proc/self/mountinfo", &mount);
        system
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn cgroup(&self) -> Option<Cgroup> {
        Cgroup::find(self.0.path())
    }
}

const V1: &str = "cgroup cgroup rw,cpu,cpuacct";
const V2: &str = "cgroup2 cgroup2 rw,nsdelegate";
const MOUNT: &str = "sys/fs/cgroup/cpu";

#[test]
fn the_group_is_found_below_its_mount() {
    let both = "5:cpuset:/x\n2:cpu,cpuacct:/docker/abc\n0::/y\n";
    for (group, mounted, kind, folder) in [
        (both, "/", V1, "/docker/abc"),
        // A container without a namespace for its groups, and one with.
        (both, "/docker/abc", V1, ""),
        ("0::/\n", "/", V2, ""),
        ("0::/system.slice/a.service\n", "/", V2, "/system.slice/a.service"),
        ("0::/../outside\n", "/", V2, "/../outside"),
    ] {
        let system = System::new(group, mounted, kind);
        let found = system.cgroup().unwrap();
        assert_eq!(found.statistics, system.0.path().join(format!("{MOUNT}{folder}/cpu.stat")));
        assert_eq!(found.throttled(), None, "no file");
    }
    assert!(System::new(both, "/", V2).cgroup().is_none() && System::new("5:cpuset:/x\n", "/", V2).cgroup().is_none());
}

#[test]
fn both_versions_count_in_nanoseconds() {
    let system = System::new("0::/\n", "/", V2);
    for (text, throttled) in [
        ("usage_usec 1\nnr_periods 2\nnr_throttled 1\nthrottled_usec 1234\nnr_bursts 0\n", Some(1_234_000)),
        ("nr_periods 2\nnr_throttled 1\nthrottled_time 1234\n", Some(1_234)),
        ("usage_usec 1\n", None),
        ("throttled_usec -1\n", None),
    ] {
        system.write(&format!("{MOUNT}/cpu.stat"), text);
        assert_eq!(system.cgroup().unwrap().throttled(), throttled, "{text}");
    }
}
