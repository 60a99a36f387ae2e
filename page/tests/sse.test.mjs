import assert from "node:assert/strict";
import test from "node:test";
import { EventParser } from "../src/sse";

const text = ": alive\n\nid: 1\nevent: view\ndata: {\"a\":1}\n\nevent: tick\ndata: 1\ndata: 2\n\ndata: plain\r\n\r\n";
const events = [
  { event: "view", data: "{\"a\":1}" }, { event: "tick", data: "1\n2" }, { event: "message", data: "plain" },
];

test("events come out wherever the stream was cut", () => {
  for (let cut = 0; cut <= text.length; ++cut) {
    const parser = new EventParser();
    assert.deepEqual([...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))], events);
  }
});

test("an event that has not ended is kept back", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("event: view\ndata: 1\n"), []);
  assert.deepEqual(parser.push("\n"), [{ event: "view", data: "1" }]);
});
