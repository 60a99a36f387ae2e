// Terminals as pictures: cells on a canvas of Chromium, with Braille, blocks and lines as terminals draw them.
const kBase = ["#000000", "#cd3131", "#0dbc79", "#e5e510", "#2472c8", "#bc3fbc", "#11a8cd", "#e5e5e5",
  "#666666", "#f14c4c", "#23d18b", "#f5f543", "#3b8eea", "#d670d6", "#29b8db", "#ffffff"];
export function colourOf(n) {
  if (n < 16) return kBase[n];
  if (n >= 232) return `rgb(${Array(3).fill(8 + 10 * (n - 232)).join()})`;
  const level = (v) => (v === 0 ? 0 : 55 + 40 * v);
  return `rgb(${[Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6].map(level).join()})`;
}

/** Runs in the page: paints the cells on a canvas without seams. */
function paint({ lines, columns, rows, w, h, font }) {
  const [ink, paper] = ["#d7dce2", "#14181d"];
  const canvas = document.createElement("canvas");
  document.body.style.margin = "0";
  document.body.replaceChildren(canvas);
  const pad = 8;
  canvas.width = columns * w + 2 * pad;
  canvas.height = rows * h + 2 * pad;
  canvas.style.display = "block";
  const ctx = canvas.getContext("2d");
  ctx.fillStyle = paper;
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.textBaseline = "alphabetic";
  lines.forEach((cells, row) => cells.forEach((cell, column) => {
    const [x, y] = [pad + column * w, pad + row * h];
    let front = cell.colour ?? ink;
    ctx.globalAlpha = 1;
    if (cell.reverse) {
      ctx.fillStyle = front;
      ctx.fillRect(x, y, w, h);
      front = paper;
    }
    ctx.fillStyle = front;
    ctx.strokeStyle = front;
    ctx.globalAlpha = cell.dim ? 0.6 : 1;
    const code = cell.text.codePointAt(0);
    if (code >= 0x2800 && code <= 0x28ff) {
      const dots = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]];
      dots.forEach(([dx, dy], bit) => {
        if ((code - 0x2800) >> bit & 1) ctx.fillRect(x + 1 + dx * 4, y + 1 + Math.round(dy * h / 4), 2, 2);
      });
    } else if (cell.text === "█") {
      ctx.fillRect(x, y + 2, w, h - 4);
    } else if (cell.text === "░") {
      ctx.globalAlpha = 0.3;
      ctx.fillRect(x, y + 2, w, h - 4);
    } else if ("─│┌┐└┘├┤┬┴".includes(cell.text)) {
      const [mx, my] = [x + w / 2, y + Math.floor(h / 2) + 0.5];
      const to = { "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu", "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru" }[cell.text];
      ctx.beginPath();
      for (const side of to) {
        ctx.moveTo(mx, my);
        ctx.lineTo(side === "l" ? x : side === "r" ? x + w : mx, side === "u" ? y : side === "d" ? y + h : my);
      }
      ctx.stroke();
    } else if (cell.text !== " ") {
      ctx.font = `${cell.bold ? "bold " : ""}${font}px "DejaVu Sans Mono", monospace`;
      ctx.fillText(cell.text, x, y + font);
    }
    if (cell.underline) ctx.fillRect(x, y + h - 2, w, 1);
  }));
}

/** A picture of `lines` of cells, as a PNG. A cell of a large screen is smaller: the picture is as wide as a page either way. */
export async function pictureOfScreen(browser, { lines, columns, rows }) {
  const [w, h, font] = columns > 150 ? [7, 15, 11.5] : [8, 17, 13];
  const page = await browser.newPage({ viewport: { width: columns * w + 16, height: rows * h + 16 } });
  try {
    await page.evaluate(paint, { lines, columns, rows, w, h, font });
    return await page.screenshot();
  } finally {
    await page.close();
  }
}
