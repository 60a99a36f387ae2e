// A fleet of twelve GPUs behind a synthetic server, and `vramtrack fleet watch` that reads it.
import { spawn } from "node:child_process";
import { createServer } from "node:http";

const kNodes = 6;

/** Two jobs on six nodes: GPUs of node 0 and 1 leak; a third job's image has leaked since it changed. */
function matrix(begin_s) {
  const out = [];
  for (let n = 0; n < kNodes; ++n)
    for (let gpu = 0; gpu < 2; ++gpu) {
      const leaks = n < 2 && gpu === 0;
      const values = [];
      for (let i = 0; i < 600; ++i) values.push([begin_s + 30 * i, String(20000 + (leaks ? 90 * i : 0) + ((i * 7919) % 40))]);
      out.push({ metric: { __name__: "DCGM_FI_DEV_FB_USED", Hostname: `node${n}`, UUID: `GPU-${n}-${gpu}`, gpu: String(gpu),
                           hpc_job: String(70 + gpu), image: gpu ? "vllm:1" : "<b>torch</b>:2", user: "ada" }, values });
      out.push({ metric: { __name__: "DCGM_FI_DEV_FB_TOTAL", Hostname: `node${n}`, UUID: `GPU-${n}-${gpu}`, gpu: String(gpu) },
                 values: values.slice(-6).map(([t]) => [t, "81559"]) });
    }
  return out;
}

/** `state.broken = true` makes the server fail. */
export async function startFleet(binary, { env = process.env } = {}) {
  const all = matrix(Math.floor(Date.now() / 1000) - 5 * 3600);
  const state = { broken: false };
  const server = createServer((request, response) => {
    const answer = (status, data) => response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(data));
    request.on("data", () => {}).on("end", () => {
      if (state.broken) return answer(500, { status: "error", error: "the disk is full" });
      if (request.url.startsWith("/api/v1/label/__name__/")) return answer(200, { status: "success", data: ["DCGM_FI_DEV_FB_USED"] });
      if (request.url.startsWith("/api/v1/label/Hostname/"))
        return answer(200, { status: "success", data: [...Array(kNodes).keys()].map((n) => `node${n}`) });
      if (request.url.startsWith("/api/v1/label/")) return answer(200, { status: "success", data: [] });
      if (request.url.startsWith("/api/v1/series")) return answer(200, { status: "success", data: all.map((one) => one.metric) });
      if (request.url.startsWith("/api/v1/query_range")) return answer(200, { status: "success", data: { resultType: "matrix", result: all } });
      answer(404, { status: "error", error: "unknown" });
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const watch = spawn(binary, ["fleet", "watch", "--url", `http://127.0.0.1:${server.address().port}`, "--listen", "127.0.0.1:0", "--every", "1s",
                               "--history", "6h", "--set", "cost.usd-per-gpu-hour=2"], { env, stdio: ["ignore", "ignore", "pipe"] });
  const url = await new Promise((done, fail) => {
    let log = "";
    watch.stderr.on("data", (data) => {
      log += data;
      const match = /the fleet is at (http:\/\/[^/]+)/.exec(log);
      if (match) done(match[1]);
    });
    watch.once("exit", () => fail(new Error(log)));
  });
  return {
    url,
    state,
    stop() {
      watch.kill("SIGTERM");
      server.close();
      server.closeAllConnections?.();
    },
  };
}
