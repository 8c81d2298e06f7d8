// The yardstick of `canonical`: what a JavaScript program does for a content revision, JSON.parse, stringify with sorted keys, SHA-256.
// `node canonical.mjs FILE ITERATIONS` prints seconds per revision and the revision.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

function stringify(value) {
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${stringify(value[key])}`);
  return `{${members.join(",")}}`;
}

const revision = (text) => createHash("sha256").update(stringify(JSON.parse(text)), "utf8").digest("hex");

const [file, iterations] = process.argv.slice(2);
const text = readFileSync(file, "utf8");
let hash = revision(text);
// Enough for the compiler to have optimised the functions.
for (let warm = 0; warm < Math.max(3, iterations / 4); warm += 1) hash = revision(text);
const start = process.hrtime.bigint();
for (let round = 0; round < iterations; round += 1) hash = revision(text);
const seconds = Number(process.hrtime.bigint() - start) / 1e9 / iterations;
console.log(`${seconds} ${hash}`);
