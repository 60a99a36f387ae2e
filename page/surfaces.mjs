// What the page shows of each view and its alerts: node surfaces.mjs < JSON array of {view, alerts} > JSON array. For tests/surfaces.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const src = join(dirname(fileURLToPath(import.meta.url)), "src");
const bundle = await build({
  stdin: { contents: 'export { alertList, factRows, severityWord, verdictBadge } from "./parts";', resolveDir: src, loader: "ts" },
  bundle: true, write: false, platform: "node", format: "esm", target: "node18", logLevel: "warning",
});
const page = await import(`data:text/javascript;base64,${Buffer.from(bundle.outputFiles[0].text).toString("base64")}`);

const text = (node) =>
  node === null || node === undefined || node === false ? ""
    : typeof node === "object" ? (node.props["aria-hidden"] === "true" ? "" : node.children.map(text).join("")) : String(node);
const desk = { open: null, busy: null, failed: null };
const seen = JSON.parse(readFileSync(0, "utf8")).map(({ view, alerts }) => ({
  series: view.series.map((s) => {
    const badge = page.verdictBadge(s.told);
    return { key: s.key, words: text(badge).trim(), tone: badge.props.class.replace("badge ", ""),
             severity: text(page.severityWord(s.told)), facts: page.factRows(s.told.facts), concern: s.told.concern };
  }),
  alerts: text(page.alertList(alerts.alerts.filter((a) => !a.told_with), desk, Date.parse(view.time) / 1000)),
}));
console.log(JSON.stringify(seen));
