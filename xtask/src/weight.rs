//! What the library weighs in a program that uses it: crates, time to build, size, beside the same program on rmcp.

use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::Scratch;
use crate::support::args::Args;
use crate::support::cargo::cargo;
use crate::support::process::{self, Output};
use crate::support::tally::Tally;
use crate::{Outcome, Stop, bench};

/// A cold build of the heaviest of them takes a few minutes on one core.
const BUILD_LIMIT: Duration = Duration::from_secs(20 * 60);

/// One way to build the least program of use.
struct Build {
    name: &'static str,
    package: &'static str,
    features: &'static [&'static str],
    goal: Option<Goal>,
}

/// What ours may cost at most. Time is held against the peer's in the same run, as it says nothing by itself on another machine:
/// the figures are those of the table of goals, in seconds of one machine, by what the peer took there.
struct Goal {
    /// The build of the peer's program that does the same, or comes nearest.
    peer: &'static str,
    crates: usize,
    cpu_of_peer: f64,
    size_mb: f64,
}

const RMCP_STDIO: &str = "rmcp, stdio alone";
const RMCP_HTTP: &str = "rmcp, stdio and http";
const RMCP_HTTPS: &str = "rmcp, with https";
/// 60 s where the peer takes 157.
const PLAIN_CPU: f64 = 60.0 / 157.0;
/// 110 s where the peer takes 220.
const HTTPS_CPU: f64 = 110.0 / 220.0;
/// A user's own program is built again in so much of the processor time that it takes on the peer: 2 s for 19.
const REBUILD_CPU: f64 = 2.0 / 19.0;

/// Peers first, as ours are held against them.
const BUILDS: [Build; 7] = [
    Build { name: RMCP_STDIO, package: "weight-rmcp", features: &[], goal: None },
    Build { name: RMCP_HTTP, package: "weight-rmcp", features: &["http"], goal: None },
    Build { name: RMCP_HTTPS, package: "weight-rmcp", features: &["https"], goal: None },
    Build {
        name: "ours, stdio alone",
        package: "weight-ours",
        features: &[],
        // Time and size have no goal of their own in the table: those with http.
        goal: Some(Goal { peer: RMCP_STDIO, crates: 45, cpu_of_peer: PLAIN_CPU, size_mb: 3.0 }),
    },
    Build {
        name: "ours, stdio and http",
        package: "weight-ours",
        features: &["http"],
        goal: Some(Goal { peer: RMCP_HTTP, crates: 70, cpu_of_peer: PLAIN_CPU, size_mb: 3.0 }),
    },
    Build {
        name: "ours, with https",
        package: "weight-ours",
        features: &["https"],
        goal: Some(Goal { peer: RMCP_HTTPS, crates: 85, cpu_of_peer: HTTPS_CPU, size_mb: 4.5 }),
    },
    Build {
        name: "ours, with all defaults",
        package: "weight-ours",
        features: &["defaults"],
        // Held against the same goal, though the peer has nothing of what comes on top.
        goal: Some(Goal { peer: RMCP_HTTPS, crates: 85, cpu_of_peer: HTTPS_CPU, size_mb: 4.5 }),
    },
];

/// Packages whose build may call a C compiler: the cryptography, and what it builds with.
const MAY_COMPILE_C: [&str; 1] = ["ring"];

pub(crate) fn run(mut args: Args) -> Outcome {
    let crates_only = args.flag("--crates");
    args.finish()?;
    let manifest = bench::manifest()?;
    let mut tally = Tally::default();
    for build in &BUILDS {
        let count = crates(&manifest, build)?;
        let text = format!("{}: {count} crates", build.name);
        match &build.goal {
            Some(goal) => tally.goal(&text, goal.crates, count <= goal.crates),
            None => println!("      {text}"),
        }
    }
    tally.record("no C compiler beyond ring's", only_ring_compiles_c(&manifest));
    if !crates_only {
        let mut peers = Vec::new();
        for build in &BUILDS {
            let weight = weigh(&manifest, build)?;
            match &build.goal {
                Some(goal) => judge(build.name, goal, &weight, &peers, &mut tally),
                None => {
                    println!("      {}: {weight}", build.name);
                    peers.push((build.name, weight));
                }
            }
        }
    }
    Ok(tally.finish())
}

/// The packages in the normal dependency tree of the program, without itself.
fn crates(manifest: &Path, build: &Build) -> Result<usize, Stop> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    select(&mut command, manifest, build);
    let finished = process::run(command, BUILD_LIMIT, Output::Capture);
    if !finished.end.is_success() {
        return Err(Stop::Broken(format!(
            "cargo tree: {}\n{}",
            finished.end,
            process::tail(&finished.stderr, 10)
        )));
    }
    let names = finished.stdout.lines().map(|line| line.trim_end_matches(" (*)"));
    let mut names: Vec<&str> = names.filter(|line| !line.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    match names.len() {
        // The program itself and our library, at the least; a count of nothing would be below every goal.
        0..2 => Err(Stop::Broken(format!("cargo tree names no dependency of {}", build.package))),
        all => Ok(all - 1),
    }
}

fn select(command: &mut Command, manifest: &Path, build: &Build) {
    command.arg("--manifest-path").arg(manifest).args(["--package", build.package]);
    if !build.features.is_empty() {
        command.args(["--features", &build.features.join(",")]);
    }
}

/// Whether a package that our program depends on builds C code, other than ring.
fn only_ring_compiles_c(manifest: &Path) -> Result<(), String> {
    let mut command = cargo();
    command.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    command.arg("--manifest-path").arg(manifest).args(["--package", "weight-ours", "--features", "defaults"]);
    command.args(["--invert", "cc", "--depth", "1"]);
    let finished = process::run(command, BUILD_LIMIT, Output::Capture);
    // Nobody at all needs it: then cargo says that there is nothing to print, or that it knows no such package.
    if !finished.end.is_success() && !finished.stderr.contains("did not match any packages") {
        return Err(format!("cargo tree: {}\n{}", finished.end, process::tail(&finished.stderr, 10)));
    }
    let users = finished.stdout.lines().filter_map(|line| line.split_whitespace().next());
    let strangers: Vec<&str> = users.filter(|name| *name != "cc" && !MAY_COMPILE_C.contains(name)).collect();
    if strangers.is_empty() { Ok(()) } else { Err(format!("so do {}", strangers.join(", "))) }
}

/// What a program was seen to cost. Seconds are of processor time, and of the clock.
struct Weight {
    cpu_s: f64,
    wall_s: f64,
    size_mb: f64,
    rebuild_s: f64,
    rebuild_wall_s: f64,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu_s, wall_s, size_mb, rebuild_s, rebuild_wall_s } = self;
        write!(f, "built in {cpu_s:.0} s of CPU ({wall_s:.0} s), {size_mb:.2} MB stripped, ")?;
        write!(f, "own main again in {rebuild_s:.1} s of CPU ({rebuild_wall_s:.1} s)")
    }
}

/// Builds one program from nothing and looks at what came of it.
fn weigh(manifest: &Path, build: &Build) -> Result<Weight, Stop> {
    let scratch = Scratch::new("weight")?;
    let own_main = manifest
        .with_file_name("weight")
        .join(build.package.trim_start_matches("weight-"))
        .join("src/main.rs");
    let mut fetch = cargo();
    fetch.args(["fetch", "--locked", "--manifest-path"]).arg(manifest);
    succeed(fetch, "cargo fetch")?;
    let (wall_s, cpu_s) = timed(compile(manifest, build, scratch.path()))?;
    let program = scratch.path().join("release").join(build.package);
    let size = std::fs::metadata(&program)
        .map_err(|error| Stop::Broken(format!("{}: {error}", program.display())))?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 bytes")]
    let size_mb = size.len() as f64 / 1e6;
    touch(&own_main)?;
    let (rebuild_wall_s, rebuild_s) = timed(compile(manifest, build, scratch.path()))?;
    Ok(Weight { cpu_s, wall_s, size_mb, rebuild_s, rebuild_wall_s })
}

/// How long a build takes, by the clock and in processor time.
fn timed(command: Command) -> Result<(f64, f64), Stop> {
    let before = children_cpu_s();
    let began = Instant::now();
    succeed(command, "cargo build")?;
    Ok((began.elapsed().as_secs_f64(), children_cpu_s() - before))
}

/// Holds one of ours against its goal.
fn judge(name: &str, goal: &Goal, weight: &Weight, peers: &[(&str, Weight)], tally: &mut Tally) {
    let Some((_, peer)) = peers.iter().find(|(name, _)| *name == goal.peer) else {
        return tally.fail(name, &format!("{} was not built before it", goal.peer));
    };
    let Weight { cpu_s, wall_s, size_mb, rebuild_s, rebuild_wall_s } = weight;
    let mut share = |what: &str, ours: f64, theirs: f64, at_most: f64| {
        let share = ours / theirs;
        // Where the system does not tell processor time there is nothing to compare, and no goal met.
        let is_met = theirs > 0.0 && share <= at_most;
        let text = format!("{name}: {what}, {share:.2}x of what {} takes", goal.peer);
        tally.goal(&text, format_args!("{at_most:.2}x"), is_met);
    };
    share(&format!("built in {cpu_s:.0} s of CPU ({wall_s:.0} s)"), *cpu_s, peer.cpu_s, goal.cpu_of_peer);
    share(
        &format!("own main again in {rebuild_s:.1} s of CPU ({rebuild_wall_s:.1} s)"),
        *rebuild_s,
        peer.rebuild_s,
        REBUILD_CPU,
    );
    tally.goal(&format!("{name}: {size_mb:.2} MB stripped"), goal.size_mb, *size_mb <= goal.size_mb);
}

fn compile(manifest: &Path, build: &Build, target_dir: &Path) -> Command {
    let mut command = cargo();
    command.args(["build", "--release", "--locked", "--quiet"]).arg("--target-dir").arg(target_dir);
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    select(&mut command, manifest, build);
    command
}

fn succeed(command: Command, what: &str) -> Result<(), Stop> {
    let finished = process::run(command, BUILD_LIMIT, Output::Capture);
    if finished.end.is_success() {
        return Ok(());
    }
    Err(Stop::Broken(format!("{what}: {}\n{}", finished.end, process::tail(&finished.stderr, 40))))
}

/// Says that a file is new, so that cargo builds it again.
fn touch(path: &Path) -> Result<(), Stop> {
    let file = std::fs::File::options().append(true).open(path);
    file.and_then(|file| file.set_modified(std::time::SystemTime::now()))
        .map_err(|error| Stop::Broken(format!("{}: {error}", path.display())))
}

/// User and system time of the children that have ended, theirs included; 0 where the system does not tell in this way.
fn children_cpu_s() -> f64 {
    /// Linux counts in hundredths of a second whatever the kernel's own clock does.
    const TICKS_PER_S: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is a name in parentheses and may hold anything; user and system time of children are fields 16 and 17.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(13).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_time_of_children_is_counted() {
        let before = children_cpu_s();
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"]);
        assert!(process::run(command, Duration::from_secs(600), Output::Capture).end.is_success());
        assert!(children_cpu_s() > before);
    }

    #[test]
    fn each_of_ours_has_a_goal_and_a_peer_that_is_built_before_it() {
        for (at, build) in BUILDS.iter().enumerate().filter(|(_, build)| build.package == "weight-ours") {
            let goal = build.goal.as_ref().unwrap();
            let peer =
                BUILDS.iter().take(at).find(|peer| peer.name == goal.peer && peer.goal.is_none()).unwrap();
            assert!(peer.features == build.features || build.features == ["defaults"]);
        }
    }
}
