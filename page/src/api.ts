// The agent's API: the only place with its URLs, its token and its errors.
import type { Fleet } from "./fleet_types";
import { keep, recall } from "./memory";
import { EventParser, type ServerEvent } from "./sse";
import type { Acknowledgement, Acts, Alerts, GaugeHistory, History, KnownSeries, SitesReport, Status, View } from "./types";

/** The agent's message, to be shown unchanged: it includes the remedy. */
export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

const kTokenKey = "vramtrack.token";
let token = recall("sessionStorage", kTokenKey);

/** Kept for this tab only. */
export function setToken(value: string): void {
  token = value.trim();
  keep("sessionStorage", kTokenKey, token);
}

async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...init, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  let code = "http";
  let message = `the agent answered ${response.status}`;
  try {
    const body = (await response.json()) as { error?: { code?: string; message?: string } };
    code = body.error?.code ?? code;
    message = body.error?.message ?? message;
  } catch {
    // A proxy's page rather than the agent's, so only the status number is useful.
  }
  throw new ApiError(response.status, code, message);
}

async function json<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await request(path, signal ? { signal } : {})).json()) as T;
}

export const getFleet = (): Promise<Fleet> => json<Fleet>("/api/v1/fleet");
export const getStatus = (): Promise<Status> => json<Status>("/api/v1/status");
export const getView = (): Promise<View> => json<View>("/api/v1/view");
export const getAlerts = (): Promise<Alerts> => json<Alerts>("/api/v1/alerts");
export const getSeries = async (signal?: AbortSignal): Promise<KnownSeries[]> =>
  (await json<{ series: KnownSeries[] }>("/api/v1/series", signal)).series;

/** The processes under `vramtrack run` for which this client may see the lines. */
export const getProbedPids = async (signal: AbortSignal): Promise<number[]> =>
  (await json<{ processes: { pid: number }[] }>("/api/v1/sites", signal)).processes.map((p) => p.pid);

/** The lines of one of them; null: its run has no report yet. */
export async function getSites(pid: number, signal: AbortSignal): Promise<SitesReport | null> {
  try {
    return await json<SitesReport>(`/api/v1/sites?pid=${pid}`, signal);
  } catch (error) {
    if (error instanceof ApiError && [404, 429, 503].includes(error.status)) return null;
    throw error;
  }
}

export const getActs = (signal: AbortSignal): Promise<Acts> => json<Acts>("/api/v1/acts", signal);

/** Switches acting off or on again. */
export async function switchActs(off: boolean): Promise<void> {
  await request("/api/v1/acts/off", { method: off ? "POST" : "DELETE", headers: { "Content-Type": "application/json" } });
}

const iso = (atS: number): string => new Date(atS * 1000).toISOString();

/** The agent reads one history at a time, so the request is repeated after a busy answer. */
async function fromStore<T>(path: string, signal?: AbortSignal): Promise<T> {
  for (let attempt = 0; ; ++attempt) {
    try {
      return await json<T>(path, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "busy" || attempt >= 3) throw error;
    }
  }
}

/** At most 128 keys. */
export function getHistory(keys: string[], fromS: number, toS: number, points: number, signal?: AbortSignal): Promise<History> {
  const query = new URLSearchParams({ from: iso(fromS), to: iso(toS), points: String(points) });
  for (const key of keys) query.append("series", key);
  return fromStore<History>(`/api/v1/history?${query.toString()}`, signal);
}

/** The values of a device's gauges. */
export function getGauges(device: string, fromS: number, toS: number, points: number, signal?: AbortSignal): Promise<GaugeHistory> {
  const query = new URLSearchParams({ device, from: iso(fromS), to: iso(toS), points: String(points) });
  return fromStore<GaugeHistory>(`/api/v1/gauges?${query.toString()}`, signal);
}

export async function acknowledge(id: string, note: string): Promise<Acknowledgement> {
  const response = await request(`/api/v1/alerts/${encodeURIComponent(id)}/acknowledge`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(note ? { note } : {}),
  });
  return (await response.json()) as Acknowledgement;
}

export async function takeBack(id: string): Promise<void> {
  await request(`/api/v1/alerts/${encodeURIComponent(id)}/acknowledge`, {
    method: "DELETE",
    headers: { "Content-Type": "application/json" },
  });
}

/** Passes on events until the stream ends or `signal` aborts; throws any error. `alive` is called for any bytes. */
export async function readEvents(take: (event: ServerEvent) => void, alive: () => void,
                                 signal: AbortSignal): Promise<void> {
  const response = await request("/api/v1/events", { signal, headers: { Accept: "text/event-stream" } });
  if (!response.body) throw new ApiError(0, "stream", "this browser cannot read streams");
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    for (const event of parser.push(decoder.decode(value, { stream: true }))) take(event);
  }
}
