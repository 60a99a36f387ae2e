// vramtrack.fleet.v1, as described in docs/fleet.md.
import type { AlertWords, Interval, Time } from "./types";

export interface FleetLeak {
  host: string;
  device: string;
  index: number | null;
  onset: Time | null;
  raised: Time;
  ended: string | null;
  told: AlertWords;
  pattern: string;
  confidence: number;
  growth_bytes_per_s: number;
  used_bytes: number;
  capacity_bytes: number | null;
  image?: string | null;
  driver?: string | null;
  pod?: string | null;
  user?: string | null;
}

export interface FleetJob {
  job: string | null;
  program: string | null;
  state: "leaks" | "suspected" | "ended";
  gpus: number;
  nodes: string[];
  leaking_nodes: string[];
  growth_bytes_per_s: number;
  oom_in_s: Interval | null;
  cache_ratio: number | null;
  gpu_hours: number;
  cost_usd: number | null;
  leaks: FleetLeak[];
}

export interface FleetFinding {
  kind: "signature" | "node" | "version";
  nodes: string[];
  jobs: string[];
  p_value: number | null;
  text: string;
}

export interface Fleet {
  server: string;
  read_by: string;
  exporters: string[];
  machines: number;
  gpus: number;
  leaking_gpus: number;
  suspected_gpus: number;
  samples: number;
  unread: { hosts: string[]; why: string }[];
  time: Time;
  took_s: number;
  every_s: number;
  trouble: string | null;
  gpu_hours_at_risk: number;
  cost_usd: number | null;
  jobs: FleetJob[];
  findings: FleetFinding[];
}
