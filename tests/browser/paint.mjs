// Terminals as pictures: what `top` writes, in xterm.js in Chromium.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { root } from "./machine.mjs";

const require = createRequire(join(root, "page/package.json"));
const kAdvance = 0.60205; // of DejaVu Sans Mono, in parts of its size: a cell is a whole number of pixels wide
const kTheme = { background: "#14181d", foreground: "#d7dce2" };

/** A screen as screens_test writes it, of each cell its character, colour and signs ("b", "d", "r", "u"), as text with escape sequences. */
function written({ columns, cells }) {
  let out = "";
  cells.forEach(([text, colour, signs], at) => {
    if (at > 0 && at % columns === 0) out += "\r\n";
    const codes = [0, ...(colour < 0 ? [] : [38, 5, colour]), ...[["b", 1], ["d", 2], ["u", 4], ["r", 7]].filter(([sign]) => signs.includes(sign)).map(([, code]) => code)];
    out += `\x1b[${codes.join(";")}m${text || " "}`;
  });
  return out;
}

/** A picture of a screen, as a PNG: of its cells, or of its text with escape sequences. A cell of a large screen is smaller: the picture is as wide as a page either way. */
export async function pictureOfScreen(browser, screen) {
  const { columns, rows } = screen;
  const page = await browser.newPage({ viewport: { width: 1700, height: 1000 } });
  try {
    const library = require.resolve("@xterm/xterm");
    await page.setContent(`<style>${readFileSync(join(library, "../../css/xterm.css"), "utf8")}body { margin: 0; background: ${kTheme.background} } #screen { display: inline-block; padding: 8px }</style><div id="screen"></div>`);
    await page.addScriptTag({ path: library });
    await page.evaluate(async ({ text, columns, rows, fontSize, theme }) => {
      const terminal = new Terminal({ cols: columns, rows, fontSize, theme, lineHeight: 1.1, fontFamily: '"DejaVu Sans Mono", monospace', scrollback: 0, cursorInactiveStyle: "none", drawBoldTextInBrightColors: false });
      terminal.open(document.getElementById("screen"));
      await new Promise((done) => terminal.write(`\x1b[?25l${text}`, done));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    }, { text: screen.text ?? written(screen), columns, rows, fontSize: (columns > 150 ? 7 : 8) / kAdvance, theme: kTheme });
    return await page.locator("#screen").screenshot();
  } finally {
    await page.close();
  }
}
