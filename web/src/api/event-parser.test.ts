import { expect, test } from "vitest";
import { EventParser } from "./event-parser";

const stream =
  'event: token\ndata: {"text":"가"}\n\n: keep alive\n\ndata: a\r\ndata: b\r\n\r\nevent: done\ndata: {}\n\n';
const events = [
  { name: "token", data: '{"text":"가"}' },
  { name: "message", data: "a\nb" },
  { name: "done", data: "{}" },
];

test("a stream gives its events", () => {
  expect(new EventParser().push(stream)).toEqual(events);
});

test("it does not matter where the stream is cut", () => {
  for (let size = 1; size < 12; size += 1) {
    const parser = new EventParser();
    const read = [];
    for (let at = 0; at < stream.length; at += size) read.push(...parser.push(stream.slice(at, at + size)));
    expect(read).toEqual(events);
  }
});

test("an event that was cut off is not given", () => {
  expect(new EventParser().push('event: done\ndata: {"answer":')).toEqual([]);
});
