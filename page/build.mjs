// Bundles the page: node build.mjs [--out FOLDER] (default page/dist); --tests: the unit tests, into FOLDER too.
import { build } from "esbuild";
import { cp, mkdir, readdir, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const tests = process.argv.includes("--tests");
const out = at > 0 ? resolve(process.argv[at + 1]) : join(here, tests ? "build/tests" : "dist");

await rm(out, { recursive: true, force: true });
if (tests) {
  const names = (await readdir(join(here, "tests"))).filter((name) => name.endsWith(".test.mjs"));
  await build({
    entryPoints: names.map((name) => join(here, "tests", name)),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node18",
    logLevel: "warning",
  });
} else {
  await mkdir(join(out, "assets"), { recursive: true });
  await build({
    entryPoints: { app: join(here, "src/main.ts"), fleet: join(here, "src/fleet.ts") },
    outdir: join(out, "assets"),
    bundle: true,
    minify: true,
    format: "iife",
    target: ["es2020"],
    legalComments: "inline",
    logLevel: "warning",
  });
  await build({
    entryPoints: [join(here, "src/app.css")],
    outdir: join(out, "assets"),
    bundle: true,
    minify: true,
    target: ["chrome111", "firefox113", "safari16.2"],
    logLevel: "warning",
  });
  // The timeline pages of `snapshot page` and `trace page`: the program puts both into one file with the data.
  await build({
    entryPoints: [join(here, "src/timeline.ts"), join(here, "src/timeline.css")],
    outdir: join(out, "offline"),
    bundle: true,
    minify: true,
    target: ["es2020", "chrome111", "firefox113", "safari16.2"],
    legalComments: "inline",
    logLevel: "warning",
  });
  await cp(join(here, "src/index.html"), join(out, "index.html"));
  await cp(join(here, "src/fleet.html"), join(out, "fleet.html"));
  // What others wrote and the page contains, with the terms they ask to be handed on.
  await cp(join(here, "node_modules/uplot/LICENSE"), join(out, "assets/uplot-licence.txt"));
  await cp(join(here, "src/icon.svg"), join(out, "assets/icon.svg"));
}
