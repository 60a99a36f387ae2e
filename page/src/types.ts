// The agent's answers, as in docs/openapi.yaml; only the parts that the page uses. Fields may be added, never renamed.

/** ISO 8601, UTC, with up to nine decimals. */
export type Time = string;

// The lines between "fields" and "end" follow from src/core/verdict_fields.hpp (CONTRIBUTING.md).
// fields: words
export type Severity = "ok" | "watch" | "warning" | "critical";
export type State = "steady" | "warming_up" | "cycling" | "growing" | "leaking" | "slow_growth" | "spiked" | "falling" | "too_short" | "loading";
export type Pattern = "none" | "gradual_leak" | "sudden_spike" | "cyclic" | "step_increase" | "unknown";
// end

/** The 10th, 50th and 90th percentiles. */
export interface Interval {
  // fields: Interval
  low: number;
  mid: number;
  high: number;
  // end
}

export interface Finding {
  // fields: Finding
  detector: string;
  leak: boolean;
  state: State;
  pattern: Pattern;
  spike: "none" | "stabilised" | "still_growing";
  confidence: number;
  growth_bytes_per_s: Interval;
  r_squared: number;
  oom_in_s: Interval | null;
  onset: Time | null;
  oom_if_growth_continues_s: number | null;
  stage: "none" | "suspected" | "confirmed" | "confirmed_at_end";
  because: string;
  // end
}

/** pid 0: no visible process explains the growth. */
export interface Suspect {
  // fields: Suspect
  pid: number;
  pid_start_ticks: number;
  command: string;
  share: number;
  // end
}

/** How a process, or the run of a device, ended. */
export interface End {
  // fields: End
  how: "ended" | "ended_near_limit" | "out_of_memory" | "host_out_of_memory";
  time: Time;
  pid: number;
  pid_start_ticks: number;
  used_bytes: number;
  command: string;
  growth_bytes_per_s: number | null;
  onset: Time | null;
  confidence: number | null;
  r_squared: number | null;
  while_loading: boolean;
  // end
}

export interface Verdict {
  // fields: Verdict
  time: Time;
  severity: Severity;
  finding: Finding;
  dissent: Finding[];
  suspect: Suspect | null;
  framework: string;
  causes: string[];
  advice: string[];
  end: End | null;
  // end
}

interface Device {
  id: string;
  index: number | null;
  name: string;
  parent_id: string;
  capacity_bytes: number | null;
  /** It has no memory of its own: when the host runs out of memory, the kernel kills a process. */
  shares_host_memory: boolean;
}

export interface Process {
  pid: number;
  user: string;
  command: string;
  command_hidden?: boolean;
  name: string;
  container: string;
  pod: string;
  slurm_job: string;
  framework: string;
}

/** The overall health of a GPU, as judged by the agent. */
export interface Condition {
  level: "unknown" | "healthy" | "degraded" | "failing";
  words: string;
  problems: { level: "degraded" | "failing"; text: string; next: string }[];
}

/** The tone, which determines the colour of words and the shape next to them. */
export type Tone = "critical" | "warning" | "watch" | "notice" | "ok" | "faint" | "plain";

/** One line below a verdict. */
export interface Fact {
  label: string;
  text: string;
}

/** The agent's conclusion about a series, in words; empty parts are left out. The page draws no conclusions itself. */
export interface ConclusionWords {
  /** "LEAK (gradual leak)", "ran out of memory; now steady". */
  verdict: string;
  /** The verdict and other problems: "steady, then the GPU was lost". */
  headline: string;
  tone: Tone;
  word: string;
  word_tone: Tone;
  /** How urgent it is: worst first. */
  concern: number;
  /** For a leak: "CRITICAL", "WARNING", "LEAK". */
  severity?: string;
  pattern?: string;
  /** "out of memory in 0h 24m (19m–30m)". */
  forecast?: string;
  /** How its run ended. */
  end?: string;
  suspect?: string;
  by?: string;
  stall?: string;
  stall_tone?: Tone;
  next?: string;
  unattributed?: string;
  facts?: Fact[];
  advice?: Fact[];
  dissent?: Fact[];
}

/** The same for an alert. */
export interface AlertWords {
  what: string;
  severity: string;
  tone: Tone;
  state: string;
  figures?: string;
  ended?: string;
}

/** The driver's figures for a device; null: unknown. */
export interface Gauges {
  memory_utilisation_ratio: number | null;
  temperature_celsius: number | null;
  power_watts: number | null;
  power_limit_watts: number | null;
  sm_clock_hertz: number | null;
  fan_ratio: number | null;
}

/** The activity of a process on its device and its use of the host; null: unknown. */
export interface Load {
  gpu_ratio: number | null;
  cpu_ratio: number | null;
  host_bytes: number | null;
}

/** A process that holds memory and makes no progress. */
export interface Stall {
  // fields: Stall
  judgement: "unclear" | "idle" | "stalled";
  cause: "unknown" | "waits" | "stopped" | "uninterruptible" | "exited" | "orphaned" | "collective" | "busy_loop" | "unread_requests";
  since: Time;
  stalled_for_s: number;
  stalled_s: number;
  confidence: number;
  held_bytes: number;
  what: string;
  evidence: string[];
  // end
  /** "stalled for 43m (confidence 80 %)". */
  words: string;
  /** The remedy; empty for an idle process. */
  next: string;
}

export interface Series {
  key: string;
  metric: string;
  pid: number;
  device: Device;
  process: Process | null;
  first: Time | null;
  last: Time | null;
  interval_s: number;
  used_bytes: number;
  peak_bytes: number;
  ended: boolean;
  paused: boolean;
  ignored: boolean;
  utilisation_ratio: number | null;
  gauges: Gauges | null;
  load: Load | null;
  stall: Stall | null;
  /** docs/openapi.yaml has more; the page needs no more. */
  health: { hears_xids: boolean | null } | null;
  last_xid: { time: Time; code: number; text: string } | null;
  condition: Condition | null;
  told: ConclusionWords;
  /** The level at which memory runs out and to which the forecast leads: the capacity less the driver's reserve. */
  limit_bytes: number | null;
  /** The line of the growth, from the onset to the last sample. */
  trend: { from: Time; to: Time; from_bytes: number; to_bytes: number } | null;
  verdict: Verdict;
  /** For a leak without an alert: why nobody is notified yet. */
  paging: string;
}

export interface View {
  time: Time;
  /** The state of the whole machine in one sentence. */
  headline: { tone: Tone; text: string };
  series: Series[];
  notices: { time: Time; text: string }[];
  warnings: string[];
}

export interface Tick {
  time: Time;
  used_bytes: Record<string, number>;
}

export interface Status {
  host: string;
  version: string;
  interval_s: number;
  simulated: string | null;
  recording: boolean;
}

export interface Acknowledgement {
  time: Time;
  by: string;
  note: string;
}

/** One line of the record of acts (vramtrack.act.v1), with the fields that are shown. */
export interface Act {
  event: string;
  time: Time;
  climb: string;
  policy: string;
  step?: number;
  action?: string;
  text?: string;
  dry_run: boolean;
  process: { pid: number; user?: string; command?: string };
  evidence: { because?: string };
}

/** vramtrack.acts.v1 */
export interface Acts {
  enabled: boolean;
  dry_run: boolean;
  off: boolean;
  off_because: string | null;
  policies: string[];
  climbs: { id: string; policy: string; phase: string; step: number; steps: number; next: string | null; pid: number; command: string; because: string }[];
  acts: Act[];
}

export interface Silence {
  id: string;
  /** null: the silence is from the configuration and does not end. */
  ends: Time | null;
  by: string;
  comment: string;
}

export interface Alert {
  id: string;
  key: string;
  device: { id: string; index: number | null; name: string };
  pid: number | null;
  process: string | null;
  // fields: Alert
  raised: Time;
  cleared: Time | null;
  lead_s: number | null;
  ended: "standing" | "released" | "process_ended" | "withdrawn" | "resumed";
  suspected_for_s: number | null;
  suspected_s: number | null;
  end_reason: string;
  severity: Severity;
  finding: Finding;
  kind: "leak" | "stall" | "unreleased" | "headroom" | "host_out_of_memory";
  end_kind: "ended" | "ended_near_limit" | "out_of_memory" | "host_out_of_memory" | null;
  paged_because: string;
  incident: string;
  // end
  told: AlertWords;
  acknowledged: Acknowledgement | null;
  /** The silence that suppresses its notifications. */
  silenced: Silence | null;
  /** For a process's alert: the id of the device's alert about the same leak. */
  told_with: string | null;
}

export interface Alerts {
  time: Time | null;
  alerts: Alert[];
}

/** The history of a series in columns; `t` is the start of each point in seconds since 1970. */
export interface Columns {
  t: number[];
  min: number[];
  mean: number[];
  max: number[];
}

export interface History {
  from: Time;
  to: Time;
  step_s: number;
  series: (Columns & { key: string })[];
}

/** The maximum values of a device's gauges; null: not reported. */
export interface GaugeHistory {
  step_s: number;
  t: number[];
  busy_ratio: (number | null)[];
  temperature_celsius: (number | null)[];
  power_watts: (number | null)[];
  sm_clock_hertz: (number | null)[];
}

export interface KnownSeries {
  key: string;
  metric: string;
  device: string;
  pid: number | null;
  first: Time;
  last: Time;
}

/** A line of a program under `vramtrack run`, and the memory it holds. */
export interface MemorySite {
  leak: boolean;
  /** The line as text: "train.py:57 train_step". */
  site: string;
  call: string;
  live_bytes: number;
  live_count: number;
  growth_bytes_per_s: number;
  frames: { function: string; file: string; line: number; python: boolean }[];
}

export interface SitesReport {
  program: string;
  verdict: { leak: boolean; suspected?: boolean; can_tell: boolean; because: string; next_step: string; growth_bytes_per_s: number };
  /** Leaking ones first. */
  sites: MemorySite[];
  sites_left_out: number;
}
