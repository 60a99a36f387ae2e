// For work on the page: node dev.mjs [AGENT] (default http://127.0.0.1:9474) serves the sources, bundled again at each load,
// on http://127.0.0.1:9475, with the agent's Content-Security-Policy, and hands all else to the agent.
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import http from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const agent = new URL(process.argv[2] ?? "http://127.0.0.1:9474");
const port = Number(process.argv[3] ?? 9475);
const types = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

http.createServer(async (request, response) => {
  const path = request.url.split("?")[0];
  if (path === "/" || path.startsWith("/assets/")) {
    try {
      if (path === "/") execFileSync(process.execPath, [join(here, "build.mjs")], { stdio: "inherit" });
      const file = path === "/" ? "/index.html" : path;
      if (file.includes("..")) throw new Error("outside");
      const body = await readFile(join(here, "dist", file));
      response.writeHead(200, { "Content-Type": types[extname(file)] ?? "application/octet-stream",
                                "Content-Security-Policy": policy });
      response.end(body);
    } catch (error) {
      response.writeHead(500, { "Content-Type": "text/plain" });
      response.end(String(error));
    }
    return;
  }
  const headers = { ...request.headers, host: agent.host };
  delete headers.origin;
  const onward = http.request({ host: agent.hostname, port: agent.port, path: request.url, method: request.method, headers },
    (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
  onward.on("error", () => response.writeHead(502).end());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port} in front of ${agent.origin}`));
