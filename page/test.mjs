// Unit tests of the page's pure functions, and its size: node test.mjs [--out FOLDER] [--dist FOLDER]
import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const option = (name) => {
  const at = process.argv.indexOf(name);
  return at > 0 ? resolve(process.argv[at + 1]) : undefined;
};
const out = option("--out") ?? join(here, "build/tests");
execFileSync(process.execPath, [join(here, "build.mjs"), "--tests", "--out", out], { stdio: "inherit" });
const files = readdirSync(out).filter((name) => name.endsWith(".test.mjs")).map((name) => join(out, name));
const { status } = spawnSync(process.execPath, ["--test", ...files], { stdio: "inherit" });

// What a browser loads the first time. The agent does not compress: loopback is faster than that.
const kMostBytes = 200_000;
const dist = option("--dist");
if (dist) {
  const sizes = ["index.html", ...readdirSync(join(dist, "assets")).map((name) => `assets/${name}`)]
    .map((name) => [name, statSync(join(dist, name)).size]);
  const sum = sizes.reduce((total, [, size]) => total + size, 0);
  console.log(sizes.map(([name, size]) => `${name} ${size}`).join(", "), `; ${sum} bytes in all, at most ${kMostBytes}`);
  if (sum > kMostBytes) process.exit(1);
}
process.exit(status ?? 1);
